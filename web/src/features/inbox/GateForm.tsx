import { useMutation, useQueryClient } from "@tanstack/react-query";
import { lazy, Suspense, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { ApiError } from "@/api/http";
import { type GateAnswer, respond } from "@/api/queries";
import type { Execution, Gate, GateOption, Json } from "@/api/views";
import { Button } from "@/components/Button";
import { Failed, Loading } from "@/components/Told";
import type { Fits } from "@/forms/SchemaForm";
import { actionCalled } from "@/graph/answers";
import { textIn } from "@/i18n";
import { uniqueId } from "@/uniqueId";
import { Changes } from "@/values/Changes";
import { changesIn } from "@/values/changes";
import { Value } from "../execution/Value";
import {
  asText,
  changed,
  dataOf,
  isOff,
  isWritten,
  lookedAt,
  mayEdit,
  NOTHING,
  offers,
  takenOver,
  type Written,
} from "./answer";
import { useBarred } from "./Barred";
import { CallsAsked } from "./CallsAsked";
import { callsAt } from "./calls";
import { GateHead } from "./GateHead";
import { PassOn } from "./PassOn";
import { keyPressed, keysFor } from "./walking";
import { isNamed } from "./whose";

const SchemaForm = lazy(() => import("@/forms/SchemaForm").then((part) => ({ default: part.SchemaForm })));

/** What stands before a server says so of it, or it says so itself as it goes. */
const AWAY: ReadonlySet<number> = new Set([502, 503, 504]);

/** The code of an answer to something that the gate does not show any more. */
const MOVED = "gate-changed";

/** What a person is asked, and the ways to answer. */
export function GateForm(props: {
  execution: string;
  gate: Gate;
  onDone?: () => void;
  /** Something is written here, or the answer was refused: that is not taken away. */
  onKept?: () => void;
  /** It waits no more: why, where that is known, in the place of the ways to answer. What is written stays. */
  over?: string | null;
  /** One key answers, where it is the only question on the page. */
  hasKeys?: boolean;
}) {
  const { t, i18n } = useTranslation();
  const { gate } = props;
  const client = useQueryClient();
  const name = useId();
  const [written, setWritten] = useState<Written>(NOTHING);
  const write = (change: Partial<Written>) => setWritten((before) => ({ ...before, ...change }));
  const fits = useRef<Fits>(null);
  // The answer names what was on the page: what changed under the reader's eyes is looked at again first.
  const [seen, setSeen] = useState(gate.digest);
  const barred = useBarred(gate);
  const answer = useMutation<Execution, ApiError, GateAnswer>({
    mutationFn: (given) => respond(props.execution, given),
    // A server that is away is asked until it is back: the answer has a key, so it counts once.
    retry: (_, why) => why.isAway || AWAY.has(why.status),
    retryDelay: (failures) => Math.min(500 * 2 ** failures, 10_000),
    onSuccess: (next) => {
      props.onDone?.();
      client.setQueryData(["execution", props.execution], next);
      void client.invalidateQueries({ queryKey: ["inbox"] });
    },
    onError: (why) => {
      if (why.code === MOVED) void client.invalidateQueries({ queryKey: ["execution"] });
    },
  });
  // One's own answer is not somebody else's.
  const over = answer.isPending || answer.isSuccess ? null : (props.over ?? null);
  const hasMoved = over === null && !answer.isPending && !answer.isSuccess && gate.digest !== seen;
  const isRefused = answer.isError && !(answer.error.code === MOVED && hasMoved);
  const mayAnswer = barred === null && over === null && !hasMoved;
  const isKept = isWritten(written) || answer.isError;
  const { onKept } = props;
  // biome-ignore lint/correctness/useExhaustiveDependencies: told once that it is so
  useEffect(() => {
    if (isKept) onKept?.();
  }, [isKept]);

  const calls = callsAt(gate);
  function labelOf(option: GateOption): string {
    if (gate.about === "calls" && option.value === "edit") return t("gate.each", { count: calls.length });
    if (gate.about === "calls" && calls.length > 1) return t(`gate.all.${option.value}`, option.value);
    const label = option.labels ?? option.label;
    if (gate.about !== "node") return t(`action.${option.value}`, textIn(label, i18n.language, option.value));
    return actionCalled(option.value, label, i18n.language, t);
  }

  /** Undefined: the form does not fit, and says where. Who rejects need not fill it in. */
  function given(action: string): Json | undefined {
    if (gate.form === null || (action === "edit" && mayEdit(gate))) return dataOf(gate, action, written);
    if (action === "reject") return fits.current?.are() ? written.form : null;
    return fits.current?.tell() === false ? undefined : written.form;
  }

  function say(action: string) {
    const data = given(action);
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

  const keys =
    props.hasKeys && mayAnswer ? keysFor(gate.options.map((option) => option.value)) : new Map<string, string>();
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      const action = keys.get(keyPressed(event));
      if (action && !answer.isPending && !isOff(gate, action, written)) say(action);
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  });
  const keyOf = (action: string) => [...keys].find(([, one]) => one === action)?.[0];

  return (
    <section aria-labelledby={name}>
      {hasMoved ? (
        <div role="alert" className="mb-3 rounded-md border border-waiting/40 bg-waiting-soft p-3">
          <p className="font-medium">{t("gate.moved")}</p>
          {isWritten(written) ? <p className="mt-1 text-ink-soft">{t("gate.movedKept")}</p> : null}
          <Button className="mt-2" onClick={lookAgain}>
            {t("gate.movedSeen")}
          </Button>
        </div>
      ) : null}
      <GateHead
        id={name}
        gate={gate}
        onTake={mayAnswer ? (data) => setWritten(takenOver(gate, data, written)) : null}
      />
      {calls.length > 0 ? (
        <CallsAsked
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
        <div className="mt-3">
          <Suspense fallback={<Loading />}>
            <SchemaForm
              schema={gate.form}
              value={written.form}
              onChange={(form) => write({ form })}
              busy={answer.isPending}
              fits={fits}
            />
          </Suspense>
        </div>
      ) : null}
      {barred === null || written.comment ? (
        <label className="mt-3 block text-sm text-ink-soft">
          {t("gate.comment")}
          <input
            value={written.comment}
            onChange={(event) => write({ comment: event.target.value })}
            className="mt-1 h-8 w-full rounded-md border border-line-strong bg-surface px-2 text-ink"
          />
        </label>
      ) : null}
      {over === null && barred === null ? (
        <div className="mt-3 flex flex-wrap gap-2">
          {gate.options.map((option, at) => (
            <Button
              key={option.value}
              kind={at === 0 ? "primary" : option.value === "reject" ? "danger" : "plain"}
              className="max-w-full"
              disabled={answer.isPending || hasMoved || isOff(gate, option.value, written)}
              onClick={() => say(option.value)}
            >
              <span className="truncate">{labelOf(option)}</span>
              {keyOf(option.value) ? (
                <kbd
                  aria-hidden
                  className="rounded border border-current px-1 text-[10px] uppercase opacity-70 max-sm:hidden"
                >
                  {keyOf(option.value)}
                </kbd>
              ) : null}
            </Button>
          ))}
          {isNamed(gate) && gate.approvers?.delegable ? (
            <PassOn execution={props.execution} gate={gate} {...(props.onDone ? { onDone: props.onDone } : {})} />
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
          <Failed why={answer.error} />
        </div>
      ) : null}
    </section>
  );
}

/** What there is to look at, with what of it may be changed. */
function Shown(props: { gate: Gate; written: Written; onWrite: ((change: Partial<Written>) => void) | null }) {
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
