/** Calls and cost of a partial run, node by node. */
import { X } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Failure } from "@/api/views";
import { money } from "@/components/amounts";
import { ErrorDetail } from "@/components/ErrorDetail";
import { IconButton } from "@/components/IconButton";
import { useNodeName } from "@/graph/model/nodeNames";
import type { DryRun } from "./requests";

interface Call {
  nodeId: string;
  name: string;
  kind: string;
  calls: number;
  callsMax: number | null;
  inputTokens?: number;
  outputTokens?: number;
  costUsd: number | null;
}

const price = (value: number | null | undefined) => (value == null ? "?" : money(value));

export function Estimate(props: {
  found: DryRun;
  /** The workflow or the input was changed since the estimate. */
  isOld: boolean;
  onClose: () => void;
}) {
  const { t } = useTranslation();
  const { found } = props;
  const calls = found.calls as unknown as Call[];
  const cost = found.cost as unknown as { unpriced: string[] };
  const assumed = found.assumptions as unknown as { outputTokensPerAnswer: number };
  const errors = found.errors as unknown as Failure[];
  return (
    <section aria-label={t("try.estimated")} className="rounded-md border border-line text-xs">
      <div className="flex items-center gap-2 pt-1 pr-1 pl-3">
        <p className="flex-1 text-ink-soft">{t("try.estimatedAbout", { count: found.steps })}</p>
        <IconButton icon={X} name={t("try.estimateClose")} size="small" onClick={props.onClose} />
      </div>
      {props.isOld ? <p className="px-3 text-waiting">{t("try.estimatedBefore")}</p> : null}
      {calls.length > 0 ? (
        <Calls found={found} calls={calls} />
      ) : (
        <p className="px-3 py-1.5">{t("try.callsNothing")}</p>
      )}
      <div className="space-y-1 px-3 pt-1 pb-2">
        {cost.unpriced.length > 0 ? (
          <p className="text-waiting wrap-anywhere">{t("try.unpriced", { models: cost.unpriced.join(", ") })}</p>
        ) : null}
        {found.status === "completed" ? null : (
          <p className="text-waiting">{t("try.endsAs", { status: t(`status.${found.status}`) })}</p>
        )}
        {errors.map((one) => (
          <ErrorDetail
            key={`${one.code} ${one.message}`}
            code={one.code}
            message={one.message}
            hint={one.hint}
            look="text-failed"
          />
        ))}
        <p className="text-ink-faint">{t("try.assumed", { tokens: assumed.outputTokensPerAnswer })}</p>
      </div>
    </section>
  );
}

function Calls({ found, calls }: { found: DryRun; calls: readonly Call[] }) {
  const { t } = useTranslation();
  const nameOf = useNodeName();
  const cost = found.cost as unknown as { lowUsd: number | null; highUsd: number | null };
  return (
    <div className="overflow-x-auto">
      <table className="w-full text-left">
        <thead className="text-ink-faint">
          <tr>
            {["node", "calls", "tokens", "cost"].map((column, nth) => (
              <th
                key={column}
                scope="col"
                className={`py-1.5 font-medium ${nth === 0 ? "pl-3" : "px-2 text-right last:pr-3"}`}
              >
                {t(`try.column.${column}`)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {calls.map((one) => (
            <tr key={`${one.nodeId} ${one.kind} ${one.name}`} className="align-top">
              <th scope="row" className="min-w-28 py-1.5 pl-3 font-normal">
                <span className="wrap-anywhere" title={one.nodeId}>
                  <bdi>{nameOf(one.nodeId)}</bdi>
                </span>
                <span className="block wrap-anywhere text-ink-faint">{one.name}</span>
              </th>
              <td className="px-2 py-1.5 text-right whitespace-nowrap tabular-nums">
                {one.calls}
                {one.callsMax === one.calls ? "" : `–${one.callsMax ?? "∞"}`}
              </td>
              <td className="px-2 py-1.5 text-right whitespace-nowrap tabular-nums">
                {one.kind === "model" ? `${one.inputTokens ?? 0} → ${one.outputTokens ?? 0}` : "–"}
              </td>
              <td className="py-1.5 pr-3 pl-2 text-right whitespace-nowrap tabular-nums">
                {one.kind === "model" ? price(one.costUsd) : "–"}
              </td>
            </tr>
          ))}
        </tbody>
        <tfoot className="border-t border-line font-medium">
          <tr>
            <td className="py-1.5 pl-3">{t("try.total")}</td>
            <td className="py-1.5 pr-3 text-right whitespace-nowrap tabular-nums" colSpan={3}>
              {price(cost.lowUsd)}
              {cost.highUsd === cost.lowUsd ? "" : ` – ${price(cost.highUsd)}`}
            </td>
          </tr>
        </tfoot>
      </table>
    </div>
  );
}
