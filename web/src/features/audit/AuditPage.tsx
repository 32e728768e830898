import { infiniteQueryOptions, queryOptions, useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { CircleCheck, Download } from "lucide-react";
import { useId } from "react";
import { useTranslation } from "react-i18next";
import { hasFilters } from "@/address";
import { apiRequest, query } from "@/api/http";
import type { Schemas } from "@/api/views";
import { Button } from "@/components/Button";
import { Chip } from "@/components/Chip";
import { BOX } from "@/components/LabelledField";
import { Listing, LoadMore } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { EmptyMessage, ErrorMessage, Loading } from "@/components/StatusMessage";
import { moment } from "@/components/times";
import { useWorkflowName } from "@/components/useWorkflowName";
import { useServerTexts } from "@/i18n/given";
import { rights } from "../access/access";

type AuditEntry = Schemas["AuditEntryView"];

/** The filters as they stand in the address, so that a user can share the link. */
export interface AuditSearch {
  who?: string;
  what?: string;
  /** Days in the user's time zone. */
  since?: string;
  until?: string;
}

const DAY_S = 86_400;

function entriesFor(search: AuditSearch) {
  const wanted = {
    who: search.who,
    what: search.what,
    since: search.since ? beginOf(search.since) : undefined,
    until: search.until ? beginOf(search.until) + DAY_S - 0.001 : undefined,
  };
  return infiniteQueryOptions({
    queryKey: ["audit", wanted],
    queryFn: ({ pageParam, signal }) =>
      apiRequest<Schemas["AuditPage"]>(`/api/audit${query({ ...wanted, before: pageParam, limit: 50 })}`, { signal }),
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.next,
  });
}

const chain = queryOptions({
  queryKey: ["audit", "state"],
  queryFn: ({ signal }) => apiRequest<Schemas["AuditState"]>("/api/audit/state", { signal }),
  staleTime: 60_000,
});

function beginOf(day: string): number {
  return new Date(`${day}T00:00:00`).getTime() / 1000;
}

/** The audit log, newest first, and whether its hash chain is intact. */
export function AuditPage() {
  const { t } = useTranslation();
  const search = useSearch({ from: "/audit" });
  const found = useInfiniteQuery(entriesFor(search));
  const all = found.data?.pages.flatMap((page) => page.entries) ?? [];
  return (
    <Page
      title={t("audit.title")}
      about={t("audit.about")}
      actions={
        <a
          href="/api/audit/export"
          download="audit.jsonl"
          className="inline-flex h-8 items-center gap-1.5 rounded-md border border-line-strong bg-surface px-3 font-medium hover:bg-sunken"
        >
          <Download className="size-4" aria-hidden /> {t("audit.export")}
        </a>
      }
    >
      <Chain />
      <Search search={search} />
      {found.isPending ? <Loading /> : null}
      {found.isError ? <ErrorMessage error={found.error} onRetry={() => void found.refetch()} /> : null}
      {found.isSuccess && all.length === 0 ? (
        !hasFilters(search) ? (
          <EmptyMessage isNew title={t("audit.none")} />
        ) : (
          <EmptyMessage title={t("audit.noMatch")}>{t("audit.noMatchHint")}</EmptyMessage>
        )
      ) : null}
      <AuditEntries all={all} />
      <LoadMore query={found} />
    </Page>
  );
}

function Chain() {
  const { t } = useTranslation();
  const known = useQuery(chain);
  return (
    <div className="mb-4" aria-live="polite">
      {known.isPending ? <p className="text-ink-faint">{t("audit.checking")}</p> : null}
      <QueryResult query={{ ...known, data: known.data ?? (known.isPending ? null : undefined) }}>
        {(reply) =>
          reply === null ? null : reply.damage.length === 0 ? (
            <p className="flex items-center gap-2" title={t("audit.head", { hash: reply.hash })}>
              <CircleCheck className="size-4 text-done" aria-hidden /> {t("audit.whole", { count: reply.rows })}
            </p>
          ) : (
            <div role="alert" className="rounded-md border border-failed/40 bg-failed-soft p-3 text-failed">
              <p className="font-medium">{t("audit.broken")}</p>
              <ul className="mt-1 list-disc pl-5">
                {reply.damage.slice(0, 10).map((one) => (
                  <li key={one}>{one}</li>
                ))}
              </ul>
            </div>
          )
        }
      </QueryResult>
    </div>
  );
}

function Search({ search }: { search: AuditSearch }) {
  const { t } = useTranslation();
  const navigate = useNavigate();
  return (
    <form
      // A new search in the address resets the fields.
      key={JSON.stringify(search)}
      className="mb-4 grid grid-cols-2 items-end gap-3 sm:flex sm:flex-wrap"
      onSubmit={(event) => {
        event.preventDefault();
        const said = new FormData(event.currentTarget);
        const entries = ["who", "what", "since", "until"].map((name) => [name, String(said.get(name) ?? "").trim()]);
        void navigate({ to: "/audit", search: Object.fromEntries(entries.filter(([, value]) => value)) });
      }}
    >
      <Field name="who" label={t("audit.who")} title={t("audit.whoAbout")} value={search.who} />
      <Field name="what" label={t("audit.what")} title={t("audit.whatAbout")} value={search.what} />
      <Field name="since" label={t("audit.since")} type="date" value={search.since} />
      <Field name="until" label={t("audit.until")} type="date" value={search.until} />
      <Button type="submit" className="h-9 justify-center">
        {t("audit.search")}
      </Button>
      {hasFilters(search) ? (
        <Button kind="quiet" className="h-9 justify-center" onClick={() => void navigate({ to: "/audit", search: {} })}>
          {t("audit.clear")}
        </Button>
      ) : null}
    </form>
  );
}

function Field(props: { name: string; label: string; title?: string; type?: string; value: string | undefined }) {
  const id = useId();
  return (
    <div className="min-w-0">
      <label htmlFor={id} className="mb-0.5 block text-xs font-medium text-ink-soft">
        {props.label}
      </label>
      <input
        id={id}
        name={props.name}
        type={props.type ?? "text"}
        title={props.title}
        defaultValue={props.value ?? ""}
        className={`${BOX} h-9`}
      />
    </div>
  );
}

function AuditEntries({ all }: { all: readonly AuditEntry[] }) {
  const { t, i18n } = useTranslation();
  return (
    <Listing
      name={t("audit.title")}
      entries={all}
      keyOf={(one) => one.id}
      columns={[
        {
          name: t("audit.when"),
          cell: (one) => (
            <time dateTime={new Date(one.at * 1000).toISOString()} className="font-normal sm:whitespace-nowrap">
              {moment(one.at, i18n.language)}
            </time>
          ),
        },
        {
          name: t("audit.who"),
          cell: (one) => (
            <>
              <bdi className="font-medium">{one.who}</bdi>
              <span className="block text-xs text-ink-faint sm:whitespace-nowrap" title={one.origin}>
                {t(`audit.entrances.${one.entrance}`, one.entrance)}
                {one.origin ? ` · ${one.origin}` : ""}
              </span>
            </>
          ),
        },
        {
          name: t("audit.what"),
          cell: (one) => (
            <div className="sm:min-w-56">
              <OperationCell what={one.what} />
            </div>
          ),
        },
        {
          name: t("audit.target"),
          cell: (one) => (one.target ? <Target target={one.target} /> : null),
        },
        {
          name: t("audit.outcome"),
          cell: (one) =>
            one.refused === null ? (
              <span className="text-ink-soft">{t("audit.done")}</span>
            ) : (
              <Chip look="bad">{t("audit.refused", { code: one.refused })}</Chip>
            ),
        },
      ]}
    />
  );
}

/** The description of the operation, and its method and path as programs log it. */
function OperationCell({ what }: { what: string }) {
  const { operation } = useServerTexts();
  const known = useQuery(rights());
  const says = known.data?.find((one) => `${one.method} ${one.path}` === what)?.says;
  return (
    <>
      {says ? <span className="block">{operation(says)}</span> : null}
      <code className={`text-xs wrap-anywhere ${says ? "text-ink-faint" : ""}`}>{what}</code>
    </>
  );
}

/** The target, as in `id=letter, revision=2`, with the name of the workflow before it. */
function Target({ target }: { target: string }) {
  const workflowName = useWorkflowName();
  const id = /(?:^|, )(?:id|workflow)=([^,]+)/.exec(target)?.[1] ?? "";
  const name = workflowName(id);
  return (
    <>
      {name === id ? null : <bdi className="block wrap-anywhere">{name}</bdi>}
      <bdi className={`wrap-anywhere ${name === id ? "" : "font-mono text-xs text-ink-faint"}`}>{target}</bdi>
    </>
  );
}
