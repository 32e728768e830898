/** Undo of an answer: the inbox holds an answer for some seconds before it sends it. Nothing has followed from an answer
 * that is taken back, because the server has not received it. */
import { useEffect, useRef } from "react";
import { type GateAnswer, isSmall } from "@/api/queries";

/** How long an answer is held. Component tests set it to 0: answers are sent at once. */
export const undoWindow = { ms: 5_000 };

/** An answer that is not sent yet. */
export interface HeldAnswer {
  action: string;
  /** Take the answer back. */
  undo: () => void;
  /** Send the answer at once. */
  send: () => void;
}

/** Return a function that holds an answer and then sends it. It is sent at once if the form is left or the page is
 * hidden or closed. Without `onHold`, and for answers that are too large to be sent by a page that closes, nothing is
 * held. */
export function useHeldAnswer(send: (answer: GateAnswer) => void, onHold: ((held: HeldAnswer) => void) | undefined) {
  const held = useRef<{ answer: GateAnswer; timer: number } | null>(null);
  const take = () => {
    const answer = held.current?.answer;
    window.clearTimeout(held.current?.timer);
    held.current = null;
    return answer;
  };
  const sendHeld = () => {
    const answer = take();
    if (answer) send(answer);
  };
  const latest = useRef(sendHeld);
  useEffect(() => {
    latest.current = sendHeld;
  });
  useEffect(() => {
    const leave = () => latest.current();
    const hide = () => document.visibilityState === "hidden" && leave();
    window.addEventListener("pagehide", leave);
    document.addEventListener("visibilitychange", hide);
    return () => {
      window.removeEventListener("pagehide", leave);
      document.removeEventListener("visibilitychange", hide);
      leave();
    };
  }, []);
  return (answer: GateAnswer) => {
    if (!onHold || undoWindow.ms === 0 || !isSmall(answer)) return send(answer);
    held.current = { answer, timer: window.setTimeout(() => latest.current(), undoWindow.ms) };
    onHold({ action: answer.action, undo: take, send: () => latest.current() });
  };
}
