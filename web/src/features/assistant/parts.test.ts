import { expect, test } from "vitest";
import type { Definition } from "@/api/views";
import { applyOperation, type Operation } from "@/features/editor/document/operations";
import { aboutOf, acceptedParts, partsOf } from "./parts";

const BEFORE: Definition = {
  id: "w",
  nodes: [
    { id: "write", type: "agent", config: {} },
    { id: "publish", type: "human", config: {} },
  ],
  edges: [{ source: "write", target: "publish" }],
};
const REVIEW: Operation[] = [
  { op: "add_node", node: { id: "critic", type: "agent", config: {} } },
  { op: "change_edge", edge: "write->publish", set: { "/target": "critic" } },
  { op: "connect", edge: { source: "critic", target: "publish" } },
  {
    op: "change_node",
    node: "publish",
    set: { "/config/message": "Good?", "/name": "Publish" },
    remove: ["/description"],
  },
];

test("all parts together equal the proposal", () => {
  const parts = partsOf(REVIEW);
  expect(parts.length).toBe(6);
  expect(acceptedParts(BEFORE, parts, new Set()).accepted.reduce(applyOperation, BEFORE)).toEqual(
    REVIEW.reduce(applyOperation, BEFORE),
  );
});

test("refusing a node drops the parts that depend on it and keeps the rest", () => {
  const parts = partsOf(REVIEW);
  const { accepted: taken, dropped: fallen } = acceptedParts(BEFORE, parts, new Set([0]));
  expect([...fallen]).toEqual([1, 2]);
  const after = taken.reduce(applyOperation, BEFORE);
  expect(after.edges).toEqual(BEFORE.edges);
  expect(after.nodes[1]).toEqual({ id: "publish", type: "human", name: "Publish", config: { message: "Good?" } });
});

test("each part names what it concerns", () => {
  expect(partsOf(REVIEW).map(aboutOf)).toEqual([
    { name: "critic", field: "" },
    { name: "write → publish", field: "target" },
    { name: "critic → publish", field: "" },
    { name: "publish", field: "description" },
    { name: "publish", field: "message" },
    { name: "publish", field: "name" },
  ]);
});
