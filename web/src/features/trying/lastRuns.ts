/** Results of previous runs, offered as mocks so that nodes need not run again. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest, query } from "@/api/http";
import { executionPath } from "@/api/queries";
import type {
  Definition,
  DefinitionNode,
  EventPage,
  ExecutionEntry,
  JournalEvent,
  Json,
  JsonObject,
} from "@/api/views";
import { type ExecutionTimeline, type StepRecord, timelineOf } from "@/features/execution/timelineModel";
import { isSameJson } from "@/graph/model/diff";
import { isObject } from "@/values/changes";

const PAGE = 1000;
const PAGES_MAX = 5;
const RUNS = 3;
const RUNS_LISTED = 20;
const FRESH_MS = 30_000;
/** These nodes route control and have no results of their own. */
const CONTROL_NODES: ReadonlySet<string> = new Set([
  "start",
  "end",
  "parallel",
  "fanout",
  "join",
  "merge",
  "loop",
  "note",
]);

/** Notes are documentation; all other nodes can run and have breakpoints. */
export const isRunnable = (type: string) => type !== "note";

export const isPinnable = (type: string) => !CONTROL_NODES.has(type);

/** One run: its timeline and the workflow that it executed. */
export interface Run {
  execution: string;
  story: ExecutionTimeline;
  definition: Definition;
}

export async function loadRun(execution: string, signal?: AbortSignal): Promise<Run> {
  const path = executionPath(execution);
  const response = await apiRequest<{ document: Definition }>(`${path}/workflow`, signal ? { signal } : {});
  const events: JournalEvent[] = [];
  let after: string | null = null;
  for (let page = 0; page < PAGES_MAX; page++) {
    const pagePath = `${path}/events${query({ after, limit: PAGE })}`;
    const read: EventPage = await apiRequest<EventPage>(pagePath, signal ? { signal } : {});
    events.push(...read.events);
    after = read.last;
    if (read.events.length < PAGE) break;
  }
  return { execution, story: timelineOf(events), definition: response.document };
}

/**
 * The latest executions and partial runs of a workflow, newest first. Several, because a partial run has no results
 * beyond its last node.
 */
export const lastRuns = (workflow: string) =>
  queryOptions({
    queryKey: ["last", workflow],
    queryFn: async ({ signal }): Promise<Run[]> => {
      const wanted = query({ workflow, trials: "true", limit: RUNS });
      const found = await apiRequest<{ executions: ExecutionEntry[] }>(`/api/workflows/executions${wanted}`, {
        signal,
      });
      return Promise.all(found.executions.map((one) => loadRun(one.executionId, signal)));
    },
    staleTime: FRESH_MS,
  });

/** Past executions and partial runs from which the user can choose. */
export const pastRuns = (workflow: string) =>
  queryOptions({
    queryKey: ["last", workflow, "list"],
    queryFn: ({ signal }) =>
      apiRequest<{ executions: ExecutionEntry[] }>(
        `/api/workflows/executions${query({ workflow, trials: "true", limit: RUNS_LISTED })}`,
        { signal },
      ).then((found) => found.executions),
    staleTime: FRESH_MS,
  });

/** Results of a node by step, from the latest run that has any. */
export function stepsOf(runs: readonly Run[], node: string): Map<string, Json> {
  for (const { story } of runs) {
    if (story.mocked.has(node)) continue;
    const found = new Map<string, Json>();
    for (const name of story.nodes.get(node)?.steps ?? []) {
      const result = resultOf(story.steps.get(name));
      if (result !== undefined) found.set(name, result);
    }
    if (found.size > 0) return found;
  }
  return new Map();
}

/** The result of a finished step in the form that a mock needs; undefined if it has none. */
export function resultOf(step: StepRecord | undefined): Json | undefined {
  if (!step || (step.status !== "done" && step.status !== "passed")) return undefined;
  const decision = step.response ?? {};
  const result = step.result ?? undefined;
  // The branch taken is stored beside the result: `branch` for human tasks and decisions, `next` for agents.
  const way = "branch" in decision ? decision : typeof decision.next === "string" ? { next: decision.next } : null;
  if (way === null) return result;
  if (result === undefined) return way;
  return isObject(result) ? { ...way, ...result } : result;
}

/** All nodes from which this node is reachable. */
export function predecessorsOf(definition: Definition, node: string): Set<string> {
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

/** Previous results of the nodes before this node, by branch and iteration; without nodes that were changed since. */
export function previousResults(definition: Definition, runs: readonly Run[], node: string): Record<string, Json> {
  const leading = predecessorsOf(definition, node);
  const found: Record<string, Json> = {};
  for (const { id, type } of definition.nodes) {
    if (!leading.has(id) || !isPinnable(type)) continue;
    const unchanged = runs.filter((run) => isSameJson(behaviourOf(run.definition, id), behaviourOf(definition, id)));
    for (const [step, result] of stepsOf(unchanged, id)) found[/#\d+$/.test(step) ? step : `${step}#1`] = result;
  }
  return found;
}

/** The parts of a node that affect its result; name and position do not. */
function behaviourOf(definition: Definition, id: string): Json {
  const node = definition.nodes?.find((one) => one.id === id);
  const { name: _, position: __, description: ___, ...behaviour } = (node ?? {}) as Partial<DefinitionNode>;
  const agents = isObject(definition.agents as Json) ? (definition.agents as JsonObject) : {};
  const agent = agents[String(node?.config?.agent)] ?? null;
  const ways = (definition.edges ?? []).filter((edge) => edge.source === id).map((edge) => edge.condition ?? null);
  return [behaviour as JsonObject, agent, ways];
}
