import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { Link, useNavigate, useParams } from "@tanstack/react-router";
import { Eraser, Plus } from "lucide-react";
import { useDeferredValue, useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { Confirm } from "@/components/Confirm";
import { ServerText } from "@/components/ErrorDetail";
import { Listing, LoadMore } from "@/components/Listing";
import { Page } from "@/components/Page";
import { QueryResult } from "@/components/QueryResult";
import { RelativeTime } from "@/components/RelativeTime";
import { SearchBox } from "@/components/SearchBox";
import { EmptyMessage } from "@/components/StatusMessage";
import { useHasRole } from "@/components/useHasRole";
import { useWorkflowName } from "@/components/useWorkflowName";
import { forgetAll, type OwnerKey, type Value, values } from "./memory";
import { ValueDialog } from "./ValueDialog";

const PREVIEW = 160;

/** The memory of one owner: search, view, correct, delete. */
export function OwnerPage() {
  const { t } = useTranslation();
  const workflowName = useWorkflowName();
  const owner = useParams({ from: "/memory/$scope/$owner" });
  const [wanted, setWanted] = useState("");
  const words = useDeferredValue(wanted.trim());
  const [namespace, setNamespace] = useState("");
  const known = useInfiniteQuery(values(owner, words, namespace));
  const [shown, setShown] = useState<Value | "new" | null>(null);
  return (
    <Page
      title={owner.scope === "workflow" ? workflowName(owner.owner) : owner.owner}
      back={{ to: "/memory", name: t("memory.title") }}
      about={t(`memory.scopesAbout.${owner.scope}`, owner.scope)}
      actions={
        <>
          <SearchBox value={wanted} onChange={setWanted} label={t("memory.search")} />
          <Actions owner={owner} namespace={namespace} onNew={() => setShown("new")} />
        </>
      }
    >
      <OwnerLink owner={owner} />
      {namespace ? (
        <p className="mb-3">
          <Button onClick={() => setNamespace("")} aria-label={t("memory.leaveNamespace", { namespace })}>
            <span className="font-mono">{namespace}</span> ×
          </Button>
        </p>
      ) : null}
      <QueryResult query={known}>
        {({ pages }) => {
          const found = pages.flatMap((page) => page.values);
          return (
            <>
              {pages[0]?.warnings?.map((one) => (
                <p key={one} className="mb-3 rounded-md bg-waiting-soft p-2 text-waiting">
                  <ServerText text={one} look="" />
                </p>
              ))}
              {found.length === 0 ? (
                <EmptyMessage title={words ? t("memory.noMatch", { words: wanted }) : t("memory.empty")} />
              ) : (
                <ValueTable found={found} onPick={setShown} onNamespace={setNamespace} />
              )}
            </>
          );
        }}
      </QueryResult>
      <LoadMore query={known} />
      {shown === null ? null : (
        <ValueDialog owner={owner} value={shown === "new" ? null : shown} onClose={() => setShown(null)} />
      )}
    </Page>
  );
}

/** A link to the owner, if it has a page. */
function OwnerLink({ owner }: { owner: OwnerKey }) {
  const { t } = useTranslation();
  if (owner.scope === "execution")
    return (
      <p className="mb-3">
        <Link to="/executions/$id" params={{ id: owner.owner }} className="text-accent underline">
          {t("memory.openExecution")}
        </Link>
      </p>
    );
  if (owner.scope === "workflow")
    return (
      <p className="mb-3">
        <Link to="/workflows/$id" params={{ id: owner.owner }} className="text-accent underline">
          {t("memory.openWorkflow")}
        </Link>
      </p>
    );
  return null;
}

function Actions(props: { owner: OwnerKey; namespace: string; onNew: () => void }) {
  const { t } = useTranslation();
  const client = useQueryClient();
  const navigate = useNavigate();
  const mayChange = useHasRole("operator");
  const workflowName = useWorkflowName();
  const [asking, setAsking] = useState(false);
  const { scope, owner } = props.owner;
  if (!mayChange) return null;
  return (
    <>
      <Button onClick={props.onNew}>
        <Plus className="size-4" aria-hidden /> {t("memory.new")}
      </Button>
      <Button kind="danger" onClick={() => setAsking(true)}>
        <Eraser className="size-4" aria-hidden /> {t("memory.forgetAll")}
      </Button>
      {asking ? (
        <Confirm
          title={t("memory.forgetAllTitle", { owner: scope === "workflow" ? workflowName(owner) : owner })}
          about={props.namespace ? t("memory.forgetUnder", { namespace: props.namespace }) : t("memory.forgetAllAbout")}
          confirmLabel={t("memory.forgetAll")}
          action={() => forgetAll(props.owner, props.namespace)}
          onDone={async () => {
            await client.invalidateQueries({ queryKey: ["memory"] });
            if (!props.namespace) await navigate({ to: "/memory" });
          }}
          onClose={() => setAsking(false)}
        />
      ) : null}
    </>
  );
}

function ValueTable(props: {
  found: readonly Value[];
  onPick: (one: Value) => void;
  onNamespace: (namespace: string) => void;
}) {
  const { t } = useTranslation();
  const when = (at: number | null | undefined) => (at ? <RelativeTime at={at} /> : null);
  return (
    <Listing
      name={t("memory.remembered")}
      entries={props.found}
      keyOf={(one) => `${one.namespace}\n${one.key}`}
      columns={[
        {
          name: t("memory.key"),
          cell: (one) => (
            <>
              {one.namespace ? (
                <button
                  type="button"
                  onClick={() => props.onNamespace(one.namespace)}
                  className="mr-1 min-h-6 font-mono text-xs font-normal text-ink-faint hover:underline"
                >
                  {one.namespace}
                </button>
              ) : null}
              <button type="button" onClick={() => props.onPick(one)} className="min-h-6 text-left hover:underline">
                {one.key}
              </button>
            </>
          ),
        },
        {
          name: t("memory.value"),
          cell: (one) => <span className="line-clamp-2 font-mono text-xs wrap-anywhere">{preview(one.value)}</span>,
        },
        { name: t("memory.changed"), cell: (one) => when(one.changedAt) },
        { name: t("memory.expires"), cell: (one) => when(one.expiresAt) },
      ]}
    />
  );
}

function preview(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > PREVIEW ? `${text.slice(0, PREVIEW)}…` : text;
}
