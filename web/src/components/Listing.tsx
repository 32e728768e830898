/** A list as a table; on a phone each row is a card whose cells say what they are: a name, and what stands in one box. */
import type { ReactNode } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "./Button";
import "./listing.css";

export interface Column<T> {
  /** What the column is called, above it or, on a card, before the value. */
  name: string;
  /** Null: nothing is there to be said; a card leaves it out. */
  cell: (one: T) => ReactNode;
  /** Numbers stand at the right. */
  isNumber?: boolean;
  /** As narrow as its content: buttons. */
  isNarrow?: boolean;
}

/** The first column names the entry, mostly as a link to it. */
export function Listing<T>(props: {
  /** What is listed, for who hears it. */
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
            <th key={column.name} scope="col" className={dressOf(column)}>
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
                <td key={column.name} data-name={column.isNarrow ? undefined : column.name} className={dressOf(column)}>
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

function dressOf<T>(column: Column<T>): string | undefined {
  return [column.isNumber ? "number" : "", column.isNarrow ? "narrow" : ""].filter(Boolean).join(" ") || undefined;
}

/** The way to the next page of a list, where there is one. */
export function More(props: {
  asked: { hasNextPage: boolean; isFetchingNextPage: boolean; fetchNextPage: () => unknown };
}) {
  const { t } = useTranslation();
  if (!props.asked.hasNextPage) return null;
  return (
    <div className="mt-3 text-center">
      <Button onClick={() => void props.asked.fetchNextPage()} disabled={props.asked.isFetchingNextPage}>
        {t("listing.more")}
      </Button>
    </div>
  );
}
