import { useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import { amount, money } from "@/components/amounts";
import { span } from "@/components/times";
import { useNodeName } from "@/graph/model/nodeNames";
import { type Cost, costsOf, type Sort, sorted, totalOf } from "./costs";
import type { ExecutionTimeline } from "./timelineModel";

const COLUMNS: readonly (keyof Cost)[] = ["node", "steps", "seconds", "calls", "tools", "input", "output", "cost"];

/** Usage of each node: sortable by each column, with a total row. */
export function Costs(props: { timeline: ExecutionTimeline; onPick: (node: string) => void }) {
  const { t } = useTranslation();
  const nodeName = useNodeName();
  const [sort, setSort] = useState<Sort>({ by: "cost", isDown: true });
  const costs = useMemo(() => costsOf(props.timeline), [props.timeline]);
  const rows = sorted(costs, sort);
  const total = totalOf(costs);
  const shown = (name: keyof Cost, row: Cost) => {
    const value = row[name];
    if (name === "seconds") return span(Number(value));
    if (name === "cost") return value === null ? "–" : money(Number(value));
    return typeof value === "number" ? amount(value) : String(value);
  };
  return (
    <div className="h-full overflow-auto">
      <table className="w-full text-xs">
        <thead className="sticky top-0 bg-surface">
          <tr>
            {COLUMNS.map((name) => (
              <th
                key={name}
                scope="col"
                aria-sort={sort.by === name ? (sort.isDown ? "descending" : "ascending") : "none"}
                className={`border-b border-line px-2 ${name === "node" ? "text-left" : "text-right"}`}
              >
                <button
                  type="button"
                  className="h-7 font-medium text-ink-soft hover:underline"
                  onClick={() => setSort({ by: name, isDown: sort.by === name ? !sort.isDown : name !== "node" })}
                >
                  {t(`costs.${name}`)} {sort.by === name ? (sort.isDown ? "↓" : "↑") : ""}
                </button>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.node} className="hover:bg-sunken">
              {COLUMNS.map((name) => (
                <td key={name} className={`px-2 tabular-nums ${name === "node" ? "" : "text-right"}`}>
                  {name === "node" ? (
                    <button
                      type="button"
                      className="h-6 max-w-60 truncate text-accent hover:underline"
                      onClick={() => props.onPick(row.node)}
                    >
                      <bdi>{nodeName(row.node)}</bdi>
                    </button>
                  ) : (
                    shown(name, row)
                  )}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
        <tfoot className="sticky bottom-0 bg-surface font-medium">
          <tr>
            {COLUMNS.map((name) => (
              <td
                key={name}
                className={`border-t border-line px-2 py-1 tabular-nums ${name === "node" ? "" : "text-right"}`}
              >
                {name === "node" ? t("costs.total") : shown(name, total)}
              </td>
            ))}
          </tr>
        </tfoot>
      </table>
    </div>
  );
}
