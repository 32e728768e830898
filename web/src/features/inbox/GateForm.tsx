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
  changed,
  type DraftAnswer,
  dataOf,
  isOff,
  isWritten,
  lookedAt,
  mayEdit,
  NOTHING,
  offers,
  takenOver,
} from "./answer";
import { isNamed } from "./assignees";
import { callsAt } from "./calls";
import { Delegate } from "./Delegate";
import { GateHead } from "./GateHead";
import { keyPressed, keysFor } from "./listKeys";
import { ToolApprovals } from "./ToolApprovals";
import { useBarred } from "./useBarred";

const SchemaForm = lazy(() => import("@/forms/SchemaForm").then((part) => ({ default: part.SchemaForm })));

/** Statuses that a proxy sends while the server is unreachable, or the server while it shuts down. */
const AWAY: ReadonlySet<number> = new Set([502, 503, 504]);

/** Error code: the gate has changed since the user saw it. */
const MOVED = "gate-changed";

/** The question of a gate, with the form to answer it. */
export function GateForm(props: {
  execution: string;
  gate: Gate;
  onDone?: () => void;
  /** Called once there is a draft or a rejected answer, which must not disappear. */
  onKept?: () => void;
  /** Set if the gate is closed: the reason if known, shown instead of the buttons. The draft stays. */
  over?: string | null;
  /** Enable a keyboard shortcut for each action; for pages with a single gate. */
  hasKeys?: boolean;
}) {
  const { t } = useTranslation();
  const { gate } = props;
  const name = useId();
  const [written, setWritten] = useState<DraftAnswer>(NOTHING);
  const write = (change: Partial<DraftAnswer>) => setWritten((before) => ({ ...before, ...change }));
  const fits = useRef<FormValidity>(null);
  // The answer carries the digest of what the user saw. If the gate changes, the user must confirm to have seen the
  // change first.
  const [seen, setSeen] = useState(gate.digest);
  const barred = useBarred(gate);
  const answer = useAnswer(props.execution, props.onDone);
  // The gate closes through the user's own answer too: that is not reported as closed by another user.
  const over = answer.isPending || answer.isSuccess ? null : (props.over ?? null);
  const hasMoved = over === null && !answer.isPending && !answer.isSuccess && gate.digest !== seen;
  const isRefused = answer.isError && !(answer.error.code === MOVED && hasMoved);
  const mayAnswer = barred === null && over === null && !hasMoved;
  const isKept = isWritten(written) || answer.isError;
  const { onKept } = props;
  // biome-ignore lint/correctness/useExhaustiveDependencies: report the change to true only
  useEffect(() => {
    if (isKept) onKept?.();
  }, [isKept]);

  const calls = callsAt(gate);
  function say(action: string) {
    const data = dataFor(gate, action, written, fits.current);
    if (data === undefined) return;
    answer.mutate({
      gateId: gate.gateId,
      action,
      ...(data === null ? {} : { data }),
      ...(written.comment ? { comment: written.comment } : {}),
      key: uniqueId(),
      ...(seen === "" ? {} : { digest: seen }),
    });
  }

  function lookAgain() {
    setSeen(gate.digest);
    answer.reset();
  }

  const press = (action: string) => {
    if (!answer.isPending && !isOff(gate, action, written)) say(action);
  };
  const keys = useAnswerKeys(gate, Boolean(props.hasKeys && mayAnswer), press);

  return (
    <section aria-labelledby={name}>
      {hasMoved ? <ChangedNotice isWritten={isWritten(written)} onSeen={lookAgain} /> : null}
      <GateHead
        id={name}
        gate={gate}
        onTake={mayAnswer ? (data) => setWritten(takenOver(gate, data, written)) : null}
      />
      {calls.length > 0 ? (
        <ToolApprovals
          calls={calls}
          decisions={written.decisions}
          onDecide={mayAnswer ? (decisions) => write({ decisions }) : null}
          wantsResults={gate.about === "client"}
          isEach={offers(gate, "edit")}
        />
      ) : (
        <Shown gate={gate} written={written} onWrite={barred === null ? write : null} />
      )}
      {gate.form && barred === null ? (
        <FormFields gate={gate} written={written} onWrite={write} busy={answer.isPending} fits={fits} />
      ) : null}
      {barred === null || written.comment ? (
        <CommentField value={written.comment} onChange={(comment) => write({ comment })} />
      ) : null}
      {over === null && barred === null ? (
        <div className="mt-3 flex flex-wrap gap-2">
          {gate.options.map((option, at) => (
            <AnswerButton
              key={option.value}
              option={option}
              gate={gate}
              isFirst={at === 0}
              shortcut={keys.get(option.value)}
              disabled={answer.isPending || hasMoved || isOff(gate, option.value, written)}
              onPress={() => say(option.value)}
            />
          ))}
          {isNamed(gate) && gate.approvers?.delegable ? (
            <Delegate execution={props.execution} gate={gate} {...(props.onDone ? { onDone: props.onDone } : {})} />
          ) : null}
        </div>
      ) : over === null ? (
        <p className="mt-3 text-ink-soft wrap-anywhere">{barred}</p>
      ) : null}
      <div role="status">
        {over ? <p className="mt-3 font-medium wrap-anywhere">{over}</p> : null}
        {over !== null && isWritten(written) ? <p className="mt-1 text-ink-soft">{t("gate.notSent")}</p> : null}
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
function dataFor(gate: Gate, action: string, written: DraftAnswer, fits: FormValidity | null): Json | undefined {
  if (gate.form === null || (action === "edit" && mayEdit(gate))) return dataOf(gate, action, written);
  if (action === "reject") return fits?.isValid() ? written.form : null;
  return fits?.showProblems() === false ? undefined : written.form;
}

/** Send the answer. The idempotency key makes a repeated answer count once, so it is retried while the server is
 * unreachable. */
function useAnswer(execution: string, onDone: (() => void) | undefined) {
  const client = useQueryClient();
  return useMutation<Execution, ApiError, GateAnswer>({
    mutationFn: (given) => respond(execution, given),
    retry: (_, why) => why.isAway || AWAY.has(why.status),
    retryDelay: (failures) => Math.min(500 * 2 ** failures, 10_000),
    onSuccess: (next) => {
      onDone?.();
      client.setQueryData(["execution", execution], next);
      void client.invalidateQueries({ queryKey: ["inbox"] });
    },
    onError: (why) => {
      if (why.code === MOVED) void client.invalidateQueries({ queryKey: ["execution"] });
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
  written: DraftAnswer;
  onWrite: (change: Partial<DraftAnswer>) => void;
  busy: boolean;
  fits: RefObject<FormValidity | null>;
}) {
  return (
    <div className="mt-3">
      <Suspense fallback={<Loading />}>
        <SchemaForm
          schema={props.gate.form ?? {}}
          value={props.written.form}
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
function Shown(props: { gate: Gate; written: DraftAnswer; onWrite: ((change: Partial<DraftAnswer>) => void) | null }) {
  const { t } = useTranslation();
  const { gate, written, onWrite } = props;
  const shown = lookedAt(gate);
  if (Object.keys(shown).length === 0) return null;
  const { edits } = written;
  const changes = Object.keys(edits).length > 0 ? changesIn(shown, changed(gate, written)) : [];
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
