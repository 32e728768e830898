import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { execution, inbox } from "@/api/queries";
import type { InboxGate } from "@/api/views";
import { ago } from "@/components/instants";
import { Empty, Failed, Loading } from "@/components/Told";
import { textIn } from "@/i18n";
import { GateForm } from "./GateForm";

/** Everything that waits for whoever looks. */
export function InboxPage() {
  const { t, i18n } = useTranslation();
  const open = useQuery(inbox());
  const [chosen, setChosen] = useState<string | null>(null);
  const gates = open.data ?? [];
  const shown = gates.find((one) => one.cursor === chosen) ?? gates[0];
  return (
    <div className="mx-auto max-w-5xl p-4 sm:p-6">
      <h1 className="text-xl font-semibold">{t("inbox.title")}</h1>
      <div className="mt-5">
        {open.isPending ? <Loading /> : null}
        {open.isError ? <Failed why={open.error} again={() => void open.refetch()} /> : null}
        {open.isSuccess && gates.length === 0 ? <Empty title={t("inbox.none")}>{t("inbox.noneHint")}</Empty> : null}
        {shown ? (
          <div className="grid gap-4 md:grid-cols-[20rem_1fr]">
            <ul className="divide-y divide-line self-start overflow-hidden rounded-lg border border-line bg-surface">
              {gates.map((one) => (
                <li key={one.cursor}>
                  <button
                    type="button"
                    aria-current={one === shown}
                    onClick={() => setChosen(one.cursor)}
                    className="block w-full px-4 py-2.5 text-left hover:bg-sunken aria-[current=true]:bg-accent-soft"
                  >
                    <span className="block truncate font-medium">{textIn(one.message, i18n.language, one.nodeId)}</span>
                    <span className="block truncate text-xs text-ink-faint">
                      {one.workflowId} · {ago(one.openedAt, i18n.language)}
                    </span>
                  </button>
                </li>
              ))}
            </ul>
            <div className="rounded-lg border border-line bg-surface p-4">
              <Asked key={shown.cursor} entry={shown} />
            </div>
          </div>
        ) : null}
      </div>
    </div>
  );
}

function Asked({ entry }: { entry: InboxGate }) {
  const { t } = useTranslation();
  const asks = entry.inside ?? entry.executionId;
  const known = useQuery(execution(asks));
  const gate = known.data?.waiting.find((one) => one.gateId === entry.gateId);
  if (known.isError) return <Failed why={known.error} />;
  if (!known.data) return <Loading />;
  return (
    <>
      <p className="mb-3 text-sm">
        <Link to="/executions/$id" params={{ id: entry.executionId }} className="text-accent underline">
          {t("inbox.open", { workflow: entry.workflowId })}
        </Link>
      </p>
      {gate ? <GateForm execution={asks} gate={gate} /> : <p>{t("inbox.closed")}</p>}
    </>
  );
}
