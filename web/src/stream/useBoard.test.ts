import { QueryClient } from "@tanstack/react-query";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { Listener } from "./subscribe";
import { watchBoard } from "./useBoard";

beforeEach(() => void vi.useFakeTimers({ now: 1_700_000_000_000 }));
afterEach(() => void vi.useRealTimers());

/** A board that the test controls, and the number of inbox requests it caused. */
function stage() {
  const client = new QueryClient();
  const reads = vi.spyOn(client, "invalidateQueries");
  let heard: Listener | undefined;
  const reconnected = vi.fn();
  const subscribe = (_: string, listener: Listener) => {
    heard = listener;
    return () => undefined;
  };
  const leave = watchBoard(client, { subscribe }, reconnected);
  const inbox = async () => {
    await vi.advanceTimersByTimeAsync(1_000);
    return reads.mock.calls.filter(([wanted]) => wanted?.queryKey?.[0] === "inbox").length;
  };
  return { leave, inbox, reconnected, board: heard as Listener };
}

describe("board subscription", () => {
  it("does not refetch when the board opens, and asks for changes since the pages loaded", async () => {
    const { board, inbox } = stage();
    expect(board.after).toBe("1700000000.000000");
    board.onConnection?.("open");
    expect(await inbox()).toBe(0);
  });

  it("refetches once for many changes, and after a reconnect", async () => {
    const { board, inbox, reconnected } = stage();
    board.onConnection?.("open");
    expect(reconnected).not.toHaveBeenCalled();
    for (const id of ["1.0", "2.0"]) board.onEvent({ id, event: "workflow.execution.changed", data: "{}" });
    expect(await inbox()).toBe(1);
    board.onConnection?.("away");
    expect(await inbox()).toBe(1);
    board.onConnection?.("open");
    expect(await inbox()).toBe(2);
    expect(reconnected).toHaveBeenCalledTimes(1);
  });

  it("stops after the subscription ends", async () => {
    const { board, inbox, leave } = stage();
    board.onEvent({ id: "1.0", event: "workflow.execution.changed", data: "{}" });
    leave();
    expect(await inbox()).toBe(0);
  });
});
