/** Datasets, and evaluation runs over their cases. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest, ifMatch, query } from "@/api/http";
import type { Schemas } from "@/api/views";

export type Dataset = Schemas["DatasetView"];
export type DatasetDetail = Schemas["DatasetDetail"];
export type Run = Schemas["RunView"];
export type RunDetail = Schemas["RunDetail"];
export type ScorerBody = Schemas["ScorerBody"];
export type Kind = ScorerBody["kind"];

export const KINDS: readonly Kind[] = ["match", "expression", "judge", "human"];
const at = (name: string) => `/api/datasets/${encodeURIComponent(name)}`;

export const datasets = () =>
  queryOptions({
    queryKey: ["datasets"],
    queryFn: ({ signal }) =>
      apiRequest<{ datasets: Dataset[] }>("/api/datasets", { signal }).then((reply) => reply.datasets),
  });

export const dataset = (name: string) =>
  queryOptions({
    queryKey: ["datasets", name],
    queryFn: ({ signal }) => apiRequest<DatasetDetail>(at(name), { signal }),
  });

/** The runs over a dataset, newest first; asked again while one is in progress. */
export const runs = (name: string) =>
  queryOptions({
    queryKey: ["evaluations", name],
    queryFn: ({ signal }) =>
      apiRequest<{ runs: Run[] }>(`/api/evaluations${query({ dataset: name })}`, { signal }).then(
        (reply) => reply.runs,
      ),
    refetchInterval: ({ state }) => (state.data?.some((one) => isOpen(one.status)) ? 3_000 : false),
  });

export const run = (id: string) =>
  queryOptions({
    queryKey: ["evaluation", id],
    queryFn: ({ signal }) => apiRequest<RunDetail>(`/api/evaluations/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: ({ state }) => (state.data && isOpen(state.data.status) ? 3_000 : false),
  });

const isOpen = (status: string) => ["pending", "running"].includes(status);

export interface NewDataset {
  workflow: string;
  text: string;
  format: "csv" | "jsonl";
  scorers: ScorerBody[];
}

export const saveDataset = (name: string, made: NewDataset) =>
  apiRequest<Dataset>(at(name), { method: "PUT", body: made });

/** Throws if the dataset has changed since it was read. */
export const removeDataset = (known: Dataset) =>
  apiRequest<void>(at(known.id), { method: "DELETE", ...ifMatch(known.etag) });

/** Start a run; the answer has the id of the execution. */
export const evaluate = (name: string) => apiRequest<{ executionId: string }>(`${at(name)}/evaluate`, { body: {} });

export const percent = (value: number, language: string) =>
  value.toLocaleString(language, { style: "percent", maximumFractionDigits: 1 });
