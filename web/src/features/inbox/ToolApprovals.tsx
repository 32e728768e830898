/** Proposed tool calls with a decision for each: run, run with other arguments, or reject. For client tools: a field
 * for each result. */
import { useId } from "react";
import { useTranslation } from "react-i18next";
import { Changes } from "@/values/Changes";
import { changesIn } from "@/values/changes";
import { Value } from "../execution/Value";
import {
  argumentsIn,
  CHOICES,
  type Choice,
  type Decision,
  type Decisions,
  decisionOn,
  type ProposedCall,
} from "./calls";

interface Props {
  calls: readonly ProposedCall[];
  decisions: Decisions;
  /** Null if the user may not answer. */
  onDecide: ((decisions: Decisions) => void) | null;
  /** The calls are client tools: the form asks for their results. */
  wantsResults: boolean;
  /** Whether each call can be decided separately. */
  isDecidedSeparately: boolean;
}

export function ToolApprovals({ calls, decisions, onDecide, wantsResults, isDecidedSeparately }: Props) {
  const { t } = useTranslation();
  const decide = (call: ProposedCall, change: Partial<Decision>) =>
    onDecide?.({ ...decisions, [call.number]: { ...decisionOn(call, decisions), ...change } });
  return (
    <ol aria-label={t("gate.calls")} className="mt-2 space-y-2">
      {calls.map((call, at) => (
        <li key={call.number} className="rounded-md border border-line p-2.5">
          <p className="font-mono text-sm wrap-anywhere">{call.tool}</p>
          <div className="mt-1">
            <Value value={call.arguments} />
          </div>
          {onDecide === null ? null : wantsResults ? (
            <TextInput
              name={t("gate.result", { tool: call.tool, number: at + 1 })}
              text={decisions[call.number]?.text ?? ""}
              onText={(text) => decide(call, { text })}
            />
          ) : isDecidedSeparately ? (
            <DecisionInput
              legend={t("gate.call", { tool: call.tool, number: at + 1 })}
              call={call}
              decision={decisionOn(call, decisions)}
              onDecide={(change) => decide(call, change)}
            />
          ) : null}
        </li>
      ))}
    </ol>
  );
}

function DecisionInput(props: {
  legend: string;
  call: ProposedCall;
  decision: Decision;
  onDecide: (change: Partial<Decision>) => void;
}) {
  const { t } = useTranslation();
  const group = useId();
  const { choice, text } = props.decision;
  const changed = choice === "change" ? argumentsIn(text) : null;
  const pick = (one: Choice) =>
    props.onDecide(
      one === "change" && !text
        ? { choice: one, text: JSON.stringify(props.call.arguments, null, 2) }
        : { choice: one },
    );
  return (
    <fieldset className="mt-2">
      <legend className="sr-only">{props.legend}</legend>
      <div className="flex flex-wrap gap-x-4 gap-y-1">
        {CHOICES.map((one) => (
          <label key={one} className="flex min-h-6 items-center gap-1.5">
            <input
              type="radio"
              name={group}
              checked={choice === one}
              onChange={() => pick(one)}
              className="accent-accent"
            />
            {t(`gate.choice.${one}`)}
          </label>
        ))}
      </div>
      {choice === "change" ? (
        <>
          <TextInput
            name={t("gate.otherArguments")}
            text={text}
            onText={(next) => props.onDecide({ text: next })}
            wrong={changed === null ? t("gate.argumentsWrong") : ""}
          />
          {changed === null ? null : (
            <div className="mt-2">
              <Changes changes={changesIn(props.call.arguments, changed)} />
            </div>
          )}
        </>
      ) : null}
    </fieldset>
  );
}

function TextInput(props: { name: string; text: string; onText: (text: string) => void; wrong?: string }) {
  const id = useId();
  return (
    <div className="mt-2">
      <label htmlFor={id} className="block text-sm text-ink-soft">
        {props.name}
      </label>
      <textarea
        id={id}
        value={props.text}
        onChange={(event) => props.onText(event.target.value)}
        rows={Math.min(12, Math.max(2, props.text.split("\n").length))}
        aria-invalid={Boolean(props.wrong)}
        aria-describedby={props.wrong ? `${id}-wrong` : undefined}
        spellCheck={false}
        className="mt-1 w-full rounded-md border border-line-strong bg-surface p-2 font-mono text-xs text-ink"
      />
      {props.wrong ? (
        <p id={`${id}-wrong`} className="text-sm text-failed">
          {props.wrong}
        </p>
      ) : null}
    </div>
  );
}
