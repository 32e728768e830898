/** The steps of two executions as table rows, grouped by branch or round, with their differences. */
import { ChevronDown, ChevronRight } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { StatusIcon } from "@/components/Status";
import { span } from "@/components/times";
import { branchNumber, stepName, useNodeName } from "@/graph/model/nodeNames";
import { Changes } from "@/values/Changes";
import { changesIn } from "@/values/changes";
import type { Group, Pair } from "./alignment";
import type { StepRecord } from "./timelineModel";

const SIGNS = { same: "=", "only-a": "−", "only-b": "+", differs: "≠", status: "≠", result: "≠" } as const;

/** Rows of one branch or round under a heading. A group without differences is collapsed at first. */
export function GroupRows({ group, first }: { group: Group; first: Pair | undefined }) {
  const { t } = useTranslation();
  const groupName = useGroupName()(group);
  const [open, setOpen] = useState<boolean | null>(null);
  const isOpen = open ?? (groupName === "" || group.difference === "differs");
  const Icon = isOpen ? ChevronDown : ChevronRight;
  return (
    <>
      {groupName === "" ? null : (
        <tr className="border-t border-line bg-sunken">
          <th scope="rowgroup" colSpan={3} className="px-2 py-1 text-left text-xs font-medium">
            <button
              type="button"
              aria-expanded={isOpen}
              onClick={() => setOpen(!isOpen)}
              className="inline-flex min-h-6 items-center gap-1 text-left hover:underline"
            >
              <Icon className="size-3.5 shrink-0" aria-hidden />
              <span>
                <bdi>{groupName}</bdi>{" "}
                <span className="font-normal text-ink-soft">{t("compare.inside", { count: group.pairs.length })}</span>
              </span>
            </button>
          </th>
          <td className="px-2 py-1">
            <span className={group.difference === "same" ? "text-ink-faint" : "text-waiting"}>
              {SIGNS[group.difference]} {t(`compare.${group.difference}`)}
            </span>
          </td>
        </tr>
      )}
      {isOpen
        ? group.pairs.map((pair) => (
            <Row key={pair.step} pair={pair} isFirst={pair === first} isInside={groupName !== ""} />
          ))
        : null}
    </>
  );
}

/** Format a branch and a round for display. */
function useGroupName(): (group: Group) => string {
  const { t } = useTranslation();
  const nodeName = useNodeName();
  return ({ branch, round }) => {
    const branches = branch.split("/").flatMap((part) => {
      const [, node, number] = /^(.+?)(?:~.*)?\[\d+\.(\d+)\]$/.exec(part) ?? [];
      return node === undefined
        ? []
        : [t("execution.branch", { node: nodeName(node), number: branchNumber(number ?? 0) })];
    });
    const at = round.lastIndexOf(" ");
    const rounds = round
      ? [t("execution.round", { node: nodeName(round.slice(0, at)), number: round.slice(at + 1) })]
      : [];
    return [...branches, ...rounds].join(" · ");
  };
}

function Row({ pair, isFirst, isInside }: { pair: Pair; isFirst: boolean; isInside: boolean }) {
  const { t } = useTranslation();
  const nodeName = useNodeName();
  const [open, setOpen] = useState(false);
  return (
    <>
      <tr className={`border-t border-line ${isFirst ? "bg-waiting-soft" : ""}`}>
        <th scope="row" className={`p-2 text-left text-xs font-normal ${isInside ? "pl-7" : ""}`} title={pair.step}>
          <bdi>{stepName(isInside ? (pair.step.split("/").at(-1) ?? "") : pair.step, nodeName)}</bdi>
        </th>
        <td className="p-2">{<Cell step={pair.a} />}</td>
        <td className="p-2">{<Cell step={pair.b} />}</td>
        <td className="p-2">
          {pair.difference === "result" ? (
            <button
              type="button"
              aria-expanded={open}
              onClick={() => setOpen(!open)}
              className="min-h-6 text-accent underline"
            >
              {SIGNS[pair.difference]} {t(`compare.${pair.difference}`)}
            </button>
          ) : (
            <span className={pair.difference === "same" ? "text-ink-faint" : "text-waiting"}>
              {SIGNS[pair.difference]} {t(`compare.${pair.difference}`)}
            </span>
          )}
        </td>
      </tr>
      {open ? (
        <tr>
          <td colSpan={4} className="p-2">
            <Changes changes={changesIn(pair.a?.result, pair.b?.result)} />
          </td>
        </tr>
      ) : null}
    </>
  );
}

function Cell({ step }: { step: StepRecord | undefined }) {
  const { t } = useTranslation();
  if (!step) return <span className="text-ink-faint">–</span>;
  const [from, to] = [step.spans[0]?.from ?? 0, step.spans.at(-1)?.to];
  return (
    <span className="inline-flex items-center gap-1.5 whitespace-nowrap">
      <StatusIcon status={step.status} className="size-3.5" />
      <span className="sr-only">{t(`status.${step.status}`)}</span>
      <span className="text-xs text-ink-soft tabular-nums">{to ? span(to - from) : "…"}</span>
    </span>
  );
}
