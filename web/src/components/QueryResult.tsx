import type { ReactNode } from "react";
import { isNotFound } from "@/api/http";
import { ErrorMessage, Loading } from "./StatusMessage";

interface QueryLike<T> {
  data: T | undefined;
  error: unknown;
  refetch: () => unknown;
}

/** Render a query: loading, failed with a retry button, or its data. Data that was loaded before stays visible after an
 * error. */
export function QueryResult<T>(props: { query: QueryLike<T>; children: (value: T) => ReactNode }) {
  const { data, error, refetch } = props.query;
  return (
    <>
      {error ? (
        <div className="mb-3">
          <ErrorMessage
            error={error}
            isGone={isNotFound(error)}
            {...(isNotFound(error) ? {} : { onRetry: () => void refetch() })}
          />
        </div>
      ) : data === undefined ? (
        <Loading />
      ) : null}
      {data === undefined ? null : props.children(data)}
    </>
  );
}
