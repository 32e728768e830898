/** The open gates of an execution. If another user answers a gate, the user's draft stays, with a notice. */

import { X } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Execution, Gate } from "@/api/views";
import { IconButton } from "@/components/IconButton";
import { useClosedReason } from "./closedGate";
import { GateForm } from "./GateForm";

const nameOf = (gate: Gate) => `${gate.executionId ?? ""} ${gate.gateId}`;

export function Gates(props: { execution: Execution; className: string; onDone: () => void }) {
  const { t } = useTranslation();
  const { execution, className } = props;
  const closedReason = useClosedReason();
  const [keptGates, setKeptGates] = useState<ReadonlyMap<string, Gate>>(new Map());
  const open = new Set(execution.waiting.map(nameOf));
  const closed = [...keptGates.values()].filter((gate) => !open.has(nameOf(gate)));
  const discard = (gate: Gate) =>
    setKeptGates((before) => new Map([...before].filter(([name]) => name !== nameOf(gate))));
  return [...execution.waiting, ...closed].map((gate) => (
    <div key={nameOf(gate)} className={className}>
      {open.has(nameOf(gate)) ? null : (
        <div className="float-right">
          <IconButton icon={X} name={t("gate.close")} onClick={() => discard(gate)} />
        </div>
      )}
      <GateForm
        execution={gate.executionId ?? execution.executionId}
        gate={gate}
        closedReason={open.has(nameOf(gate)) ? null : (closedReason(gate, execution) ?? t("gate.over"))}
        onDraftKept={() => setKeptGates((before) => new Map(before).set(nameOf(gate), gate))}
        onDone={() => {
          discard(gate);
          props.onDone();
        }}
      />
    </div>
  ));
}
