import type { UseInfiniteQueryResult } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { LoadMore } from "@/components/Listing";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { useHasRole } from "@/components/useHasRole";
import { Changes } from "@/values/Changes";
import { brief, changesIn } from "@/values/changes";
import type { Change } from "./memory";
import { Writer, WriterName } from "./Writer";

type HistoryQuery = UseInfiniteQueryResult<{ pages: { changes: Change[] }[] }>;

/** The history of a value, latest first: author, time, and changes. */
export function History({ query, onPutBack }: { query: HistoryQuery; onPutBack: (one: Change) => void }) {
  const { t } = useTranslation();
  return (
    <section className="mt-5">
      <h3 className="mb-1.5 font-semibold">{t("memory.history")}</h3>
      <QueryResult query={query}>
        {({ pages }) => {
          const all = pages.flatMap((page) => page.changes);
          if (all.length === 1) return <p className="text-ink-soft">{t("memory.firstKnown")}</p>;
          return (
            <ol className="space-y-1.5" aria-label={t("memory.history")}>
              {all.map((one, at) => (
                <Entry
                  key={one.number}
                  one={one}
                  before={all[at + 1]}
                  isNow={at === 0}
                  isFirst={!query.hasNextPage && at === all.length - 1}
                  onPutBack={onPutBack}
                />
              ))}
            </ol>
          );
        }}
      </QueryResult>
      <LoadMore query={query} />
    </section>
  );
}

function Entry(props: {
  one: Change;
  before: Change | undefined;
  isNow: boolean;
  /** Earlier values are unknown. */
  isFirst: boolean;
  onPutBack: (one: Change) => void;
}) {
  const { one, before } = props;
  const { t } = useTranslation();
  const mayChange = useHasRole("operator");
  const [open, setOpen] = useState(false);
  return (
    <li>
      <details
        className="rounded-md border border-line bg-surface"
        open={open}
        onToggle={(event) => setOpen(event.currentTarget.open)}
      >
        <summary className="min-h-6 cursor-pointer px-2.5 py-2">
          <span className="inline-flex w-[calc(100%-1.5rem)] flex-wrap items-baseline gap-x-3 gap-y-0.5 align-top">
            <span className="min-w-0 flex-1 basis-40 truncate font-mono text-xs">{brief(one.value as Json)}</span>
            {props.isNow ? <Chip look="good">{t("memory.now")}</Chip> : null}
            <WriterName by={one.by} />
            <span className="text-ink-soft">
              {one.changedAt ? <RelativeTime at={one.changedAt} /> : t("memory.longAgo")}
            </span>
          </span>
        </summary>
        {open ? (
          <div className="space-y-2 border-t border-line p-2.5">
            <p>
              {t("memory.writtenBy")} <Writer by={one.by} />
            </p>
            {before ? (
              <Changes changes={changesIn(before.value as Json, one.value as Json)} />
            ) : (
              <>
                {props.isFirst ? <p className="text-ink-faint">{t("memory.firstKnown")}</p> : null}
                <pre className="max-h-60 overflow-auto font-mono text-xs wrap-anywhere whitespace-pre-wrap">
                  {brief(one.value as Json, 2_000)}
                </pre>
              </>
            )}
            {mayChange && !props.isNow ? (
              <p className="text-right">
                <Button onClick={() => props.onPutBack(one)}>{t("memory.putBack")}</Button>
              </p>
            ) : null}
          </div>
        ) : null}
      </details>
    </li>
  );
}
