/** The open gates of an execution. If another user answers a gate, the user's draft stays, with a notice. */

import { X } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Execution, Gate } from "@/api/views";
import { IconButton } from "@/components/IconButton";
import { useClosing } from "./closedGate";
import { GateForm } from "./GateForm";

const nameOf = (gate: Gate) => `${gate.executionId ?? ""} ${gate.gateId}`;

export function Gates(props: { execution: Execution; className: string; onDone: () => void }) {
  const { t } = useTranslation();
  const { execution, className } = props;
  const over = useClosing();
  const [kept, keep] = useState<ReadonlyMap<string, Gate>>(new Map());
  const open = new Set(execution.waiting.map(nameOf));
  const gone = [...kept.values()].filter((gate) => !open.has(nameOf(gate)));
  const letGo = (gate: Gate) => keep((before) => new Map([...before].filter(([name]) => name !== nameOf(gate))));
  return [...execution.waiting, ...gone].map((gate) => (
    <div key={nameOf(gate)} className={className}>
      {open.has(nameOf(gate)) ? null : (
        <div className="float-right">
          <IconButton icon={X} name={t("gate.close")} onClick={() => letGo(gate)} />
        </div>
      )}
      <GateForm
        execution={gate.executionId ?? execution.executionId}
        gate={gate}
        over={open.has(nameOf(gate)) ? null : (over(gate, execution) ?? t("gate.over"))}
        onKept={() => keep((before) => new Map(before).set(nameOf(gate), gate))}
        onDone={() => {
          letGo(gate);
          props.onDone();
        }}
      />
    </div>
  ));
}
