/** What a trial would call and cost, node by node. */
import { useTranslation } from "react-i18next";
import { money } from "@/components/amounts";
import { useNodeName } from "@/graph/called";
import type { Estimated } from "./asking";

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

export function Estimate({ found }: { found: Estimated }) {
  const { t } = useTranslation();
  const called = useNodeName();
  const calls = found.calls as unknown as Call[];
  const cost = found.cost as unknown as { lowUsd: number | null; highUsd: number | null; unpriced: string[] };
  return (
    <section aria-label={t("try.estimated")} className="overflow-x-auto rounded-md border border-line">
      <table className="w-full text-left text-xs">
        <caption className="px-3 pt-2 text-left text-ink-soft">
          {t("try.estimatedAbout", { count: found.steps })}
        </caption>
        <thead className="text-ink-faint">
          <tr>
            {["node", "calls", "tokens", "cost"].map((column) => (
              <th key={column} scope="col" className="px-3 py-1.5 font-medium">
                {t(`try.column.${column}`)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {calls.map((one) => (
            <tr key={`${one.nodeId} ${one.name}`}>
              <td className="px-3 py-1.5 break-all">
                <bdi title={one.nodeId}>{called(one.nodeId)}</bdi> <span className="text-ink-faint">{one.name}</span>
              </td>
              <td className="px-3 tabular-nums">
                {one.calls}
                {one.callsMax === one.calls ? "" : `–${one.callsMax ?? "∞"}`}
              </td>
              <td className="px-3 tabular-nums">
                {one.kind === "model" ? `${one.inputTokens ?? 0} → ${one.outputTokens ?? 0}` : "–"}
              </td>
              <td className="px-3 tabular-nums">{one.kind === "model" ? price(one.costUsd) : "–"}</td>
            </tr>
          ))}
        </tbody>
        <tfoot className="border-t border-line font-medium">
          <tr>
            <td className="px-3 py-1.5" colSpan={3}>
              {t("try.total")}
            </td>
            <td className="px-3 tabular-nums">
              {price(cost.lowUsd)}
              {cost.highUsd === cost.lowUsd ? "" : ` – ${price(cost.highUsd)}`}
            </td>
          </tr>
        </tfoot>
      </table>
      {cost.unpriced.length > 0 ? (
        <p className="px-3 pb-2 text-xs text-waiting">{t("try.unpriced", { models: cost.unpriced.join(", ") })}</p>
      ) : null}
    </section>
  );
}
