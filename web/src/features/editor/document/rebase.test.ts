import { expect, test } from "vitest";
import type { Definition } from "@/api/views";
import { rebase } from "./rebase";

const BASE: Definition = {
  id: "letter",
  nodes: [
    { id: "write", type: "agent", config: { prompt: "one" } },
    { id: "send", type: "agent", config: { prompt: "two" } },
  ],
  edges: [{ source: "write", target: "send" }],
};

test("changes of different fields apply without conflicts", () => {
  const theirs = { ...BASE, nodes: [BASE.nodes[0] as never, { ...(BASE.nodes[1] as object), name: "Sent" } as never] };
  const mine = [[{ op: "change_node" as const, node: "write", set: { "/config/prompt": "mine" } }]];
  expect(rebase(mine, BASE, theirs)).toEqual({ done: mine, clashes: [] });
});

test("a field that both sides changed keeps the local value and is reported", () => {
  const theirs = {
    ...BASE,
    nodes: [{ id: "write", type: "agent", config: { prompt: "theirs" } }, BASE.nodes[1] as never],
  };
  const mine = [[{ op: "change_node" as const, node: "write", set: { "/config/prompt": "mine" } }]];
  expect(rebase(mine, BASE, theirs)).toEqual({
    done: mine,
    clashes: [{ why: "both", about: "write: config.prompt" }],
  });
});

test("operations that no longer apply are dropped one by one", () => {
  const theirs: Definition = { ...BASE, nodes: [BASE.nodes[0] as never, { id: "review", type: "human" }], edges: [] };
  const found = rebase(
    [
      [
        { op: "change_node", node: "send", set: { "/config/prompt": "x" } },
        { op: "change_node", node: "write", set: { "/config/prompt": "y" } },
      ],
      [{ op: "add_node", node: { id: "review", type: "agent" } }],
      [{ op: "disconnect", edge: "write->send" }],
      [{ op: "add_node", node: { id: "more", type: "agent" } }],
      [{ op: "connect", edge: { source: "write", target: "more" } }],
    ],
    BASE,
    theirs,
  );
  expect(found.clashes).toEqual([
    { why: "gone", about: "send" },
    { why: "taken", about: "review" },
    { why: "gone", about: "write->send" },
  ]);
  expect(found.done.map((act) => act.map((one) => one.op))).toEqual([["change_node"], ["add_node"], ["connect"]]);
});

test("a field that both sides removed needs no operation", () => {
  const theirs = { ...BASE, nodes: [{ id: "write", type: "agent", config: {} }, BASE.nodes[1] as never] };
  const mine = [[{ op: "change_node" as const, node: "write", remove: ["/config/prompt"] }]];
  expect(rebase(mine, BASE, theirs).done).toEqual([]);
});
