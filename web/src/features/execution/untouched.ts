import type { NodeStory } from "./story";

/** A node to which nothing has happened yet. */
export const untouched = (node: string): NodeStory => ({
  node,
  steps: [],
  open: 0,
  waiting: 0,
  done: 0,
  failed: 0,
  cancelled: 0,
  round: null,
  latest: "pending",
});
