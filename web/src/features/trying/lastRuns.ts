/** What nodes brought when the workflow ran last: offered to be pinned, so that they need not be performed again. */
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
const FRESH_MS = 30_000;
/** They lead control, and bring nothing of their own. */
const LEADERS: ReadonlySet<string> = new Set(["start", "end", "parallel", "fanout", "join", "merge", "loop", "note"]);

/** Notes say something to people; whatever else there is can be run to and stopped at. */
export const isRun = (type: string) => type !== "note";

export const isPinnable = (type: string) => !LEADERS.has(type);

/** One time that it ran: what happened, and the workflow that it was. */
export interface Run {
  story: ExecutionTimeline;
  definition: Definition;
}

export async function runOf(execution: string, signal?: AbortSignal): Promise<Run> {
  const path = executionPath(execution);
  const told = await apiRequest<{ document: Definition }>(`${path}/workflow`, signal ? { signal } : {});
  const events: JournalEvent[] = [];
  let after: string | null = null;
  for (let page = 0; page < PAGES_MAX; page++) {
    const wanted = `${path}/events${query({ after, limit: PAGE })}`;
    const read: EventPage = await apiRequest<EventPage>(wanted, signal ? { signal } : {});
    events.push(...read.events);
    after = read.last;
    if (read.events.length < PAGE) break;
  }
  return { story: timelineOf(events), definition: told.document };
}

/** The latest executions and trials of a workflow, newest first: one that was run to a node knows nothing of the rest. */
export const lastRuns = (workflow: string) =>
  queryOptions({
    queryKey: ["last", workflow],
    queryFn: async ({ signal }): Promise<Run[]> => {
      const wanted = query({ workflow, trials: "true", limit: RUNS });
      const found = await apiRequest<{ executions: ExecutionEntry[] }>(`/api/workflows/executions${wanted}`, {
        signal,
      });
      return Promise.all(found.executions.map((one) => runOf(one.executionId, signal)));
    },
    staleTime: FRESH_MS,
  });

/** What a node brought when it ran last, by its steps; those of the latest run that knows it. */
export function stepsOf(runs: readonly Run[], node: string): Map<string, Json> {
  for (const { story } of runs) {
    if (story.mocked.has(node)) continue;
    const found = new Map<string, Json>();
    for (const name of story.nodes.get(node)?.steps ?? []) {
      const brought = broughtBy(story.steps.get(name));
      if (brought !== undefined) found.set(name, brought);
    }
    if (found.size > 0) return found;
  }
  return new Map();
}

/** What a finished step brought, as it can be pinned; undefined: nothing is known. */
function broughtBy(step: StepRecord | undefined): Json | undefined {
  if (!step || (step.status !== "done" && step.status !== "passed")) return undefined;
  const said = step.response ?? {};
  const result = step.result ?? undefined;
  // By which way a step was left stands beside its result: as a person or a decision says it, or an agent.
  const way = "branch" in said ? said : typeof said.next === "string" ? { next: said.next } : null;
  if (way === null) return result;
  if (result === undefined) return way;
  return isObject(result) ? { ...way, ...result } : result;
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

/** What leads to a node, branch by branch and round by round as it was last time; not of nodes that were changed since. */
export function asLastTime(definition: Definition, runs: readonly Run[], node: string): Record<string, Json> {
  const leading = before(definition, node);
  const found: Record<string, Json> = {};
  for (const { id, type } of definition.nodes) {
    if (!leading.has(id) || !isPinnable(type)) continue;
    const unchanged = runs.filter((run) => isSameJson(saidOf(run.definition, id), saidOf(definition, id)));
    for (const [step, brought] of stepsOf(unchanged, id)) found[/#\d+$/.test(step) ? step : `${step}#1`] = brought;
  }
  return found;
}

/** What a node does: where it stands and how it is called makes no difference. */
function saidOf(definition: Definition, id: string): Json {
  const node = definition.nodes?.find((one) => one.id === id);
  const { name: _, position: __, description: ___, ...said } = (node ?? {}) as Partial<DefinitionNode>;
  const agents = isObject(definition.agents as Json) ? (definition.agents as JsonObject) : {};
  const agent = agents[String(node?.config?.agent)] ?? null;
  const ways = (definition.edges ?? []).filter((edge) => edge.source === id).map((edge) => edge.condition ?? null);
  return [said as JsonObject, agent, ways];
}
