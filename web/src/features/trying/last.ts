/** What nodes brought when the workflow ran last: offered to be pinned, so that they need not be performed again. */
import { queryOptions } from "@tanstack/react-query";
import { ask, query } from "@/api/http";
import { executionPath } from "@/api/queries";
import type { Definition, EventPage, ExecutionEntry, JournalEvent, Json } from "@/api/views";
import { type Story, storyOf } from "../execution/story";

const PAGE = 1000;
const PAGES_MAX = 5;
/** They lead control, and bring nothing of their own. */
const LEADERS: ReadonlySet<string> = new Set(["start", "end", "parallel", "fanout", "join", "merge", "loop", "note"]);

export const isPinnable = (type: string) => !LEADERS.has(type);

/** The story of the latest execution or trial of a workflow; null: there is none. */
export const lastStory = (workflow: string) =>
  queryOptions({
    queryKey: ["last", workflow],
    queryFn: async ({ signal }): Promise<Story | null> => {
      const wanted = query({ workflow, trials: "true", limit: 1 });
      const found = await ask<{ executions: ExecutionEntry[] }>(`/api/workflows/executions${wanted}`, { signal });
      const id = found.executions[0]?.executionId;
      if (!id) return null;
      const events: JournalEvent[] = [];
      let after: string | null = null;
      for (let page = 0; page < PAGES_MAX; page++) {
        const path = `${executionPath(id)}/events${query({ after, limit: PAGE })}`;
        const read: EventPage = await ask<EventPage>(path, { signal });
        events.push(...read.events);
        after = read.last;
        if (read.events.length < PAGE) break;
      }
      return storyOf(events);
    },
  });

/** What the latest finished step of a node brought, as it can be pinned; undefined: nothing is known. */
export function broughtBy(story: Story | null | undefined, node: string): Json | undefined {
  const steps = story?.nodes.get(node)?.steps ?? [];
  for (const name of steps.toReversed()) {
    const step = story?.steps.get(name);
    if (!step || (step.status !== "done" && step.status !== "passed")) continue;
    const said = step.said ?? {};
    // What the engine says of a step tells by which way it was left.
    if (step.result === undefined || step.result === null) return "branch" in said ? said : (step.result ?? undefined);
    const isObject = typeof step.result === "object" && !Array.isArray(step.result);
    return isObject ? { ...said, ...(step.result as object) } : step.result;
  }
  return undefined;
}

/** All nodes from which a node is reached. */
export function before(definition: Definition, node: string): Set<string> {
  const found = new Set<string>();
  const waiting = [node];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop())
    for (const edge of definition.edges)
      if (edge.target === at && !found.has(edge.source) && edge.source !== node) {
        found.add(edge.source);
        waiting.push(edge.source);
      }
  return found;
}

/** What leads to a node, as it was last time. */
export function asLastTime(
  definition: Definition,
  story: Story | null | undefined,
  node: string,
): Record<string, Json> {
  const leading = before(definition, node);
  return Object.fromEntries(
    definition.nodes.flatMap((one) => {
      const brought = leading.has(one.id) && isPinnable(one.type) ? broughtBy(story, one.id) : undefined;
      return brought === undefined ? [] : [[one.id, brought]];
    }),
  );
}
