/** The executions of a version, asked again while they run. */
import { useQueries } from "@tanstack/react-query";
import { execution } from "@/api/queries";
import { ENDED, type Execution } from "@/api/views";
import type { Version } from "./store";

const POLL_MS = 1_000;

/** An execution at its limit continues only when its limit is raised, on its own page. */
const isSettled = (one: Execution) => ENDED.has(one.status) || one.status === "interrupted";

export interface Answers {
  byId: ReadonlyMap<string, Execution>;
  errors: ReadonlyMap<string, Error>;
  /** Executions that have not ended. */
  running: readonly string[];
}

export function useAnswers(version: Version | undefined): Answers {
  const ids = (version?.cells ?? []).flat().flatMap((cell) => cell.execution ?? []);
  const queries = useQueries({
    queries: ids.map((id) => ({
      ...execution(id),
      refetchInterval: ({ state }: { state: { data?: Execution | undefined } }) =>
        state.data && isSettled(state.data) ? (false as const) : POLL_MS,
    })),
  });
  const byId = new Map(queries.flatMap(({ data }) => (data ? [[data.executionId, data] as const] : [])));
  const errors = new Map(queries.flatMap(({ error }, at) => (error ? [[ids[at] as string, error] as const] : [])));
  const running = ids.filter((id) => {
    const found = byId.get(id);
    return found ? !isSettled(found) : !errors.has(id);
  });
  return { byId, errors, running };
}
