import { useEffect, useEffectEvent, useRef, useState } from "react";

const DEBOUNCE_MS = 250;

/** State of a text field with a debounced callback. A change of `value` from outside (back button, link) updates the
 * field. */
export function useDebouncedInput(value: string, onChange: (words: string) => void): [string, (words: string) => void] {
  const [typed, type] = useState(value);
  const lastSent = useRef(value);
  const sendLatest = useEffectEvent(onChange);
  useEffect(() => {
    if (value !== lastSent.current) {
      lastSent.current = value;
      type(value);
    }
  }, [value]);
  useEffect(() => {
    const words = typed.trim();
    if (words === lastSent.current) return;
    const timer = setTimeout(() => {
      lastSent.current = words;
      sendLatest(words);
    }, DEBOUNCE_MS);
    return () => clearTimeout(timer);
  }, [typed]);
  return [typed, type];
}
