/** A list as a table. On a phone each row is a card, and each cell shows the name of its column. */
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./Button";
import "./listing.css";

export interface Column<T> {
  /** Title of the column; on a card it precedes the value. */
  name: string;
  /** Null without a value; a card then omits the cell. */
  cell: (one: T) => ReactNode;
  /** Align to the right, as for numbers. */
  isNumber?: boolean;
  /** As narrow as its content, for buttons. */
  isNarrow?: boolean;
}

/** A table with one row per entry. The first column names the entry, usually as a link. */
export function Listing<T>(props: {
  /** Accessible name of the table. */
  name: string;
  entries: readonly T[];
  keyOf: (one: T) => string;
  columns: readonly Column<T>[];
}) {
  const [first, ...others] = props.columns;
  if (first === undefined || props.entries.length === 0) return null;
  return (
    <table className="listing">
      <caption className="sr-only">{props.name}</caption>
      <thead>
        <tr>
          {props.columns.map((column) => (
            <th key={column.name} scope="col" className={classOf(column)}>
              {column.isNarrow ? <span className="sr-only">{column.name}</span> : column.name}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {props.entries.map((one) => (
          <tr key={props.keyOf(one)}>
            <th scope="row">{first.cell(one)}</th>
            {others.map((column) => {
              const shown = column.cell(one);
              return (
                <td key={column.name} data-name={column.isNarrow ? undefined : column.name} className={classOf(column)}>
                  {shown === null || column.isNarrow ? shown : <div>{shown}</div>}
                </td>
              );
            })}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function classOf<T>(column: Column<T>): string | undefined {
  return [column.isNumber ? "number" : "", column.isNarrow ? "narrow" : ""].filter(Boolean).join(" ") || undefined;
}

/** A button that loads the next page of a list, if there is one. */
export function LoadMore(props: {
  query: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
}) {
  const { t } = useTranslation();
  if (!props.query.hasNextPage) return null;
  return (
    <div className="mt-3 text-center">
      <Button onClick={() => void props.query.fetchNextPage()} disabled={props.query.isFetchingNextPage}>
        {t("listing.more")}
      </Button>
    </div>
  );
}
