import { useMutation, useQueryClient } from "@tanstack/react-query";
import type { TFunction } from "i18next";
import { lazy, type RefObject, Suspense, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { type GateAnswer, respond } from "@/api/queries";
import type { Execution, Gate, GateOption, Json } from "@/api/views";
import { Button } from "@/components/Button";
import { ErrorMessage, Loading } from "@/components/StatusMessage";
import type { FormValidity } from "@/forms/SchemaForm";
import { actionName } from "@/graph/model/answerNames";
import { textIn } from "@/i18n";
import { uniqueId } from "@/uniqueId";
import { Changes } from "@/values/Changes";
import { changesIn } from "@/values/changes";
import { Value } from "../execution/Value";
import {
  asText,
  type DraftAnswer,
  dataOf,
  EMPTY_DRAFT,
  hasOption,
  isDisabled,
  isDraftFilled,
  mayEdit,
  shownData,
  withEdits,
  withVoteData,
} from "./answer";
import { isRestricted } from "./assignees";
import { callsAt } from "./calls";
import { DelegateButton } from "./Delegate";
import { GateHead } from "./GateHead";
import { type HeldAnswer, useHeldAnswer } from "./heldAnswer";
import { keyPressed, keysFor } from "./listKeys";
import { ToolApprovals } from "./ToolApprovals";
import { useBarredReason } from "./useBarredReason";

const SchemaForm = lazy(() => import("@/forms/SchemaForm").then((part) => ({ default: part.SchemaForm })));

/** Statuses that a proxy sends while the server is unreachable, or the server while it shuts down. */
const UNREACHABLE_STATUSES: ReadonlySet<number> = new Set([502, 503, 504]);

/** Error code: the gate has changed since the user saw it. */
const GATE_CHANGED = "gate-changed";

interface GateFormProps {
  execution: string;
  gate: Gate;
  onDone?: () => void;
  /** Called once there is a draft or a rejected answer, which must not disappear. */
  onDraftKept?: () => void;
  /** Set where an answer can be taken back: called with an answer that is held before it is sent. */
  onHold?: (held: HeldAnswer) => void;
  /** Called if the server refuses the answer. */
  onRefused?: () => void;
  /** Set if the gate is closed: the reason if known, shown instead of the buttons. The draft stays. */
  closedReason?: string | null;
  /** Enable a keyboard shortcut for each action; for pages with a single gate. */
  hasKeys?: boolean;
  /** Set for the recipient of a link, who has no account: sends the answer by the link. */
  sendByLink?: (answer: GateAnswer) => Promise<unknown>;
}

/** The question of a gate, with the form to answer it. */
export function GateForm(props: GateFormProps) {
  const { t } = useTranslation();
  const { gate } = props;
  const name = useId();
  const [draft, setDraft] = useState<DraftAnswer>(EMPTY_DRAFT);
  const write = (change: Partial<DraftAnswer>) => setDraft((before) => ({ ...before, ...change }));
  const fits = useRef<FormValidity>(null);
  // The answer carries the digest of what the user saw; after a change of the gate the user must confirm first.
  const [seen, setSeen] = useState(gate.digest);
  const barredReason = useBarredReason(gate, !props.sendByLink);
  const answer = useAnswer(props);
  const hold = useHeldAnswer((given) => answer.mutate(given), props.onHold);
  // The gate closes through the user's own answer too: that is not reported as closed by another user.
  const closedReason = answer.isPending || answer.isSuccess ? null : (props.closedReason ?? null);
  const hasChanged = closedReason === null && !answer.isPending && !answer.isSuccess && gate.digest !== seen;
  const isRefused = answer.isError && !(answer.error.code === GATE_CHANGED && hasChanged);
  const mayAnswer = barredReason === null && closedReason === null && !hasChanged;
  const isFilled = isDraftFilled(draft);
  const hasDraft = isFilled || answer.isError;
  const { onDraftKept } = props;
  // biome-ignore lint/correctness/useExhaustiveDependencies: report the change to true only
  useEffect(() => {
    if (hasDraft) onDraftKept?.();
  }, [hasDraft]);

  const calls = callsAt(gate);
  function submit(action: string) {
    const data = dataFor(gate, action, draft, fits.current);
    if (data === undefined) return;
    hold({
      gateId: gate.gateId,
      action,
      ...(data === null ? {} : { data }),
      ...(draft.comment ? { comment: draft.comment } : {}),
      key: uniqueId(),
      ...(seen === "" ? {} : { digest: seen }),
    });
  }

  function acceptChange() {
    setSeen(gate.digest);
    answer.reset();
  }

  const press = (action: string) => {
    if (!answer.isPending && !isDisabled(gate, action, draft)) submit(action);
  };
  const keys = useAnswerKeys(gate, Boolean(props.hasKeys && mayAnswer), press);

  return (
    <section aria-labelledby={name}>
      {hasChanged ? <ChangedNotice isWritten={isFilled} onSeen={acceptChange} /> : null}
      <GateHead
        id={name}
        gate={gate}
        onCopyVote={mayAnswer ? (data) => setDraft(withVoteData(gate, data, draft)) : null}
      />
      {calls.length > 0 ? (
        <ToolApprovals
          calls={calls}
          decisions={draft.decisions}
          onDecide={mayAnswer ? (decisions) => write({ decisions }) : null}
          wantsResults={gate.about === "client"}
          isDecidedSeparately={hasOption(gate, "edit")}
        />
      ) : (
        <ShownData gate={gate} draft={draft} onWrite={barredReason === null ? write : null} />
      )}
      {gate.form && barredReason === null ? (
        <FormFields gate={gate} draft={draft} onWrite={write} busy={answer.isPending} fits={fits} />
      ) : null}
      {barredReason === null || draft.comment ? (
        <CommentField value={draft.comment} onChange={(comment) => write({ comment })} />
      ) : null}
      {closedReason === null && barredReason === null ? (
        <div className="mt-3 flex flex-wrap gap-2">
          {gate.options.map((option, at) => (
            <AnswerButton
              key={option.value}
              option={option}
              gate={gate}
              isFirst={at === 0}
              shortcut={keys.get(option.value)}
              disabled={answer.isPending || hasChanged || isDisabled(gate, option.value, draft)}
              onPress={() => submit(option.value)}
            />
          ))}
          {isRestricted(gate) && gate.approvers?.delegable && !props.sendByLink ? (
            <DelegateButton
              execution={props.execution}
              gate={gate}
              {...(props.onDone ? { onDone: props.onDone } : {})}
            />
          ) : null}
        </div>
      ) : closedReason === null ? (
        <p className="mt-3 text-ink-soft wrap-anywhere">{barredReason}</p>
      ) : null}
      <div role="status">
        {closedReason ? <p className="mt-3 font-medium wrap-anywhere">{closedReason}</p> : null}
        {closedReason !== null && isFilled ? <p className="mt-1 text-ink-soft">{t("gate.notSent")}</p> : null}
        {answer.failureCount > 0 && answer.isPending ? <p className="mt-2 text-waiting">{t("gate.kept")}</p> : null}
      </div>
      {isRefused ? (
        <div className="mt-3">
          <ErrorMessage error={answer.error} />
        </div>
      ) : null}
    </section>
  );
}

/** The data of an answer, or undefined if the form is invalid (it then shows why). A rejection does not need a valid
 * form. */
function dataFor(gate: Gate, action: string, draft: DraftAnswer, fits: FormValidity | null): Json | undefined {
  if (gate.form === null || (action === "edit" && mayEdit(gate))) return dataOf(gate, action, draft);
  if (action === "reject") return fits?.isValid() ? draft.form : null;
  return fits?.showProblems() === false ? undefined : draft.form;
}

/** Send the answer. The idempotency key makes a repeated answer count once, so it is retried while the server is
 * unreachable. */
function useAnswer({ execution, onDone, onRefused, sendByLink }: GateFormProps) {
  const client = useQueryClient();
  return useMutation<Execution | null, ApiError, GateAnswer>({
    mutationFn: (answer) => (sendByLink ? sendByLink(answer).then(() => null) : respond(execution, answer)),
    retry: (_, why) => why.isUnreachable || UNREACHABLE_STATUSES.has(why.status),
    retryDelay: (failures) => Math.min(500 * 2 ** failures, 10_000),
    onSuccess: (next) => {
      onDone?.();
      if (next === null) return;
      client.setQueryData(["execution", execution], next);
      void client.invalidateQueries({ queryKey: ["inbox"] });
    },
    onError: (why) => {
      onRefused?.();
      if (why.code === GATE_CHANGED) void client.invalidateQueries({ queryKey: ["execution"] });
    },
  });
}

/** Answer by keyboard shortcuts while `isOn`. Returns the key of each action. */
function useAnswerKeys(gate: Gate, isOn: boolean, press: (action: string) => void): ReadonlyMap<string, string> {
  const keys = isOn ? keysFor(gate.options.map((option) => option.value)) : new Map<string, string>();
  useEffect(() => {
    const down = (event: KeyboardEvent) => {
      const action = keys.get(keyPressed(event));
      if (action) press(action);
    };
    window.addEventListener("keydown", down);
    return () => window.removeEventListener("keydown", down);
  });
  return new Map([...keys].map(([key, action]) => [action, key]));
}

/** The gate changed after the user saw it: answering is disabled until the user confirms. */
function ChangedNotice({ isWritten, onSeen }: { isWritten: boolean; onSeen: () => void }) {
  const { t } = useTranslation();
  return (
    <div role="alert" className="mb-3 rounded-md border border-waiting/40 bg-waiting-soft p-3">
      <p className="font-medium">{t("gate.moved")}</p>
      {isWritten ? <p className="mt-1 text-ink-soft">{t("gate.movedKept")}</p> : null}
      <Button className="mt-2" onClick={onSeen}>
        {t("gate.movedSeen")}
      </Button>
    </div>
  );
}

function FormFields(props: {
  gate: Gate;
  draft: DraftAnswer;
  onWrite: (change: Partial<DraftAnswer>) => void;
  busy: boolean;
  fits: RefObject<FormValidity | null>;
}) {
  return (
    <div className="mt-3">
      <Suspense fallback={<Loading />}>
        <SchemaForm
          schema={props.gate.form ?? {}}
          value={props.draft.form}
          onChange={(form) => props.onWrite({ form })}
          busy={props.busy}
          validity={props.fits}
        />
      </Suspense>
    </div>
  );
}

function CommentField({ value, onChange }: { value: string; onChange: (text: string) => void }) {
  const { t } = useTranslation();
  return (
    <label className="mt-3 block text-sm text-ink-soft">
      {t("gate.comment")}
      <input
        value={value}
        onChange={(event) => onChange(event.target.value)}
        className="mt-1 h-8 w-full rounded-md border border-line-strong bg-surface px-2 text-ink"
      />
    </label>
  );
}

function AnswerButton(props: {
  option: GateOption;
  gate: Gate;
  isFirst: boolean;
  shortcut: string | undefined;
  disabled: boolean;
  onPress: () => void;
}) {
  const { t, i18n } = useTranslation();
  const { option, shortcut } = props;
  return (
    <Button
      kind={props.isFirst ? "primary" : option.value === "reject" ? "danger" : "plain"}
      className="max-w-full"
      disabled={props.disabled}
      onClick={props.onPress}
    >
      <span className="truncate">{labelOf(props.gate, option, i18n.language, t)}</span>
      {shortcut ? (
        <kbd aria-hidden className="rounded border border-current px-1 text-[10px] uppercase opacity-70 max-sm:hidden">
          {shortcut}
        </kbd>
      ) : null}
    </Button>
  );
}

function labelOf(gate: Gate, option: GateOption, language: string, t: TFunction): string {
  const count = callsAt(gate).length;
  if (gate.about === "calls" && option.value === "edit") return t("gate.each", { count });
  if (gate.about === "calls" && count > 1) return t(`gate.all.${option.value}`, option.value);
  const label = option.labels ?? option.label;
  if (gate.about !== "node") return t(`action.${option.value}`, textIn(label, language, option.value));
  return actionName(option.value, label, language, t);
}

/** The shown data, with inputs for the editable fields. */
function ShownData(props: {
  gate: Gate;
  draft: DraftAnswer;
  onWrite: ((change: Partial<DraftAnswer>) => void) | null;
}) {
  const { t } = useTranslation();
  const { gate, draft, onWrite } = props;
  const shown = shownData(gate);
  if (Object.keys(shown).length === 0) return null;
  const { edits } = draft;
  const changes = Object.keys(edits).length > 0 ? changesIn(shown, withEdits(gate, draft)) : [];
  return (
    <>
      <dl className="mt-2 space-y-2">
        {Object.entries(shown).map(([path, value]) => (
          <div key={path}>
            <dt className="font-mono text-xs text-ink-soft">{path}</dt>
            <dd>
              {onWrite && mayEdit(gate) && gate.editable.includes(path) ? (
                <textarea
                  value={edits[path] ?? asText(value ?? null)}
                  onChange={(event) => onWrite({ edits: { ...edits, [path]: event.target.value } })}
                  aria-label={t("gate.edit", { path })}
                  rows={Math.min(12, Math.max(3, asText(value ?? null).split("\n").length))}
                  className="w-full rounded-md border border-line-strong bg-surface p-2 text-sm"
                />
              ) : (
                <Value value={value} />
              )}
            </dd>
          </div>
        ))}
      </dl>
      {changes.length > 0 ? (
        <div className="mt-2">
          <p className="mb-1 font-medium">{t("gate.changes")}</p>
          <Changes changes={changes} />
        </div>
      ) : null}
    </>
  );
}
