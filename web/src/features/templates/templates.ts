/** Templates: shipped workflows to start from. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest } from "@/api/http";
import type { Definition, Json, Schemas } from "@/api/views";

export type Template = Schemas["TemplateView"];
export type TemplateDetail = Schemas["TemplateDetail"];
export type TriedTemplate = Schemas["DryRunView"];

/** The filter of the gallery, as it stands in the address. */
export interface TemplateSearch {
  q?: string;
  tag?: string;
}

const at = (id: string) => `/api/templates/${encodeURIComponent(id)}`;

/** They belong to the release of the server and do not change. */
export const templates = () =>
  queryOptions({
    queryKey: ["templates"],
    queryFn: ({ signal }) =>
      apiRequest<{ templates: Template[] }>("/api/templates", { signal }).then((reply) => reply.templates),
    staleTime: Number.POSITIVE_INFINITY,
  });

export const template = (id: string) =>
  queryOptions({
    queryKey: ["templates", id],
    queryFn: ({ signal }) => apiRequest<TemplateDetail>(at(id), { signal }),
    staleTime: Number.POSITIVE_INFINITY,
  });

/** Run it with its script; nothing is called or stored. */
export const tryTemplate = (id: string, input: Json) => apiRequest<TriedTemplate>(`${at(id)}/try`, { body: { input } });

/** Save a copy and return its id. */
export const copyTemplate = (id: string) => apiRequest<{ id: string }>(`${at(id)}/use`, { body: {} });

/** The graph of a template as a definition, for its picture. */
export const definitionOf = (one: Template): Definition => ({
  id: one.id,
  ...(one.entry ? { entry: one.entry } : {}),
  nodes: one.nodes as Definition["nodes"],
  edges: one.edges,
  graph: { ...one.graph, known: one.nodes.map((node) => node.id) },
});

/** The templates with all words in their texts or tags, and with the tag. */
export function fitting(all: readonly Template[], search: TemplateSearch, language: string): Template[] {
  const words = (search.q ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((one) => {
    const text = [one.id, one.name[language] ?? one.name.en, one.description[language] ?? "", ...one.tags];
    const whole = text.join(" ").toLowerCase();
    return (!search.tag || one.tags.includes(search.tag)) && words.every((word) => whole.includes(word));
  });
}

/** The tags by frequency, for the filter. */
export function tagsOf(all: readonly Template[]): string[] {
  const counts = new Map<string, number>();
  for (const tag of all.flatMap((one) => one.tags)) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0])).map(([tag]) => tag);
}
