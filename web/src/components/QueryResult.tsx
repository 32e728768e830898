import type { ReactNode } from "react";
import { isGone } from "@/api/http";
import { ErrorMessage, Loading } from "./StatusMessage";

interface Asked<T> {
  data: T | undefined;
  error: unknown;
  refetch: () => unknown;
}

/** What was asked of the server: under way, failed with a way to ask again, or there. What was there stays shown. */
export function QueryResult<T>(props: { asked: Asked<T>; children: (value: T) => ReactNode }) {
  const { data, error, refetch } = props.asked;
  return (
    <>
      {error ? (
        <div className="mb-3">
          <ErrorMessage
            why={error}
            isGone={isGone(error)}
            {...(isGone(error) ? {} : { again: () => void refetch() })}
          />
        </div>
      ) : data === undefined ? (
        <Loading />
      ) : null}
      {data === undefined ? null : props.children(data)}
    </>
  );
}
