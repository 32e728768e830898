/** The state of the inbox: which gates are listed, which one is shown, and which answers are held or being sent. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { inbox, me } from "@/api/queries";
import type { InboxGate } from "@/api/views";
import { type Assignee, isAssignedTo } from "./assignees";
import type { HeldAnswer } from "./heldAnswer";
import { keyPressed, nextOf } from "./listKeys";

/** The identity of a gate, independent of when it was opened. */
function gateOf(entry: InboxGate): string {
  return `${entry.inside ?? entry.executionId} ${entry.gateId}`;
}

export interface Held {
  entry: InboxGate;
  answer: HeldAnswer;
}

export function useInbox(assignee: Assignee, workflow: string) {
  const user = useQuery(me()).data;
  const open = useQuery(inbox(true, assignee === "every"));
  const [done, setDone] = useState<ReadonlyMap<string, string>>(new Map());
  const [chosen, setChosen] = useState<InboxGate | null>(null);
  const [held, setHeld] = useState<Held | null>(null);
  const [sending, setSending] = useState<readonly InboxGate[]>([]);
  const all = open.data ?? [];
  const unanswered = all.filter(
    (one) => !done.has(one.cursor) && !sending.some((each) => gateOf(each) === gateOf(one)),
  );
  const gates = unanswered.filter(
    (one) => (!workflow || one.workflowId === workflow) && (!user || isAssignedTo(assignee, one, user)),
  );
  // A gate that is opened again has another cursor, but stays selected.
  const shown = gates.find((one) => chosen !== null && gateOf(one) === gateOf(chosen)) ?? chosen ?? gates[0] ?? null;
  const isListed = (entry: InboxGate) => all.some((one) => one.cursor === entry.cursor && !done.has(one.cursor));

  // Select the first gate explicitly, so that it stays on display if another user answers it.
  const first = gates[0];
  useEffect(() => {
    if (chosen === null && first) setChosen(first);
  }, [chosen, first]);
  useEffect(() => {
    const walk = (event: KeyboardEvent) => {
      const by = keyPressed(event) === "j" ? 1 : keyPressed(event) === "k" ? -1 : 0;
      const at = shown && gates.some((one) => one.cursor === shown.cursor) ? shown.cursor : null;
      if (by) select(at === null ? gates[0]?.cursor : nextOf(gates, at, by));
    };
    window.addEventListener("keydown", walk);
    return () => window.removeEventListener("keydown", walk);
  });

  const select = (cursor: string | null | undefined) => setChosen(gates.find((one) => one.cursor === cursor) ?? null);
  const moveOn = (cursor: string) => {
    const next = nextOf(gates, cursor, 1);
    select(next === cursor ? null : next);
  };
  /** Forget that an answer is held or being sent. */
  const release = (entry: InboxGate) => {
    setSending((now) => now.filter((one) => gateOf(one) !== gateOf(entry)));
    setHeld((now) => (now && gateOf(now.entry) === gateOf(entry) ? null : now));
  };
  const actionsOf = (entry: InboxGate) => ({
    onHold: (answer: HeldAnswer) => {
      held?.answer.send();
      setHeld({ entry, answer });
      setSending((now) => [...now, entry]);
      moveOn(entry.cursor);
    },
    onDone: () => {
      setDone((now) => new Map(now).set(entry.cursor, gateOf(entry)));
      if (!sending.some((one) => gateOf(one) === gateOf(entry))) moveOn(entry.cursor);
      release(entry);
    },
    onRefused: () => {
      if (!sending.some((one) => gateOf(one) === gateOf(entry))) return;
      release(entry);
      setChosen(entry);
    },
    onNext: () => setChosen(null),
  });
  const undo = () => {
    if (!held) return;
    held.answer.undo();
    release(held.entry);
    setChosen(held.entry);
  };
  /** The cards that exist: the shown gate, and hidden ones whose answers are held or being sent. After an answer, a gate
   * that is opened again gets a new card. */
  const cards = [...sending, ...(shown ? [shown] : [])].map((entry) => ({
    key: `${gateOf(entry)} ${[...done.values()].filter((one) => one === gateOf(entry)).length}`,
    entry,
    isListed: isListed(entry),
    isShown: entry === shown,
    ...actionsOf(entry),
  }));
  return { user, open, all, unanswered, gates, shown, setChosen, cards, held, undo };
}
