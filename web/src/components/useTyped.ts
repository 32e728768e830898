import { useEffect, useEffectEvent, useRef, useState } from "react";

const RESTS_MS = 250;

/** Words as they are typed, and said when the typing rests; what is said elsewhere (back, a link) is shown. */
export function useTyped(said: string, say: (words: string) => void): [string, (words: string) => void] {
  const [typed, type] = useState(said);
  const told = useRef(said);
  const latest = useEffectEvent(say);
  useEffect(() => {
    if (said !== told.current) {
      told.current = said;
      type(said);
    }
  }, [said]);
  useEffect(() => {
    const words = typed.trim();
    if (words === told.current) return;
    const timer = setTimeout(() => {
      told.current = words;
      latest(words);
    }, RESTS_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return [typed, type];
}
