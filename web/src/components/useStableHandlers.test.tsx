import { renderHook } from "@testing-library/react";
import { expect, test } from "vitest";
import { useStableHandlers } from "./useStableHandlers";

test("a handler stays the same function and calls the latest one", () => {
  const { result, rerender } = renderHook(({ by }) => useStableHandlers({ add: (to: number) => to + by }), {
    initialProps: { by: 1 },
  });
  const { add } = result.current;
  expect(add(1)).toBe(2);
  rerender({ by: 10 });
  expect(result.current.add).toBe(add);
  expect(add(1)).toBe(11);
});
