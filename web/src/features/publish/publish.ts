/** Publications: of the owner of a workflow, and of visitors who have the link. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest, ifMatch } from "@/api/http";
import type { Json, Schemas } from "@/api/views";

export type Publication = Schemas["PublicationView"];
export type PublicationBody = Schemas["PublicationBody"];
export type Run = Schemas["FormRunView"];

const at = encodeURIComponent;
const LOOKS_MS = 1_500;

export const publication = (workflow: string) =>
  queryOptions({
    queryKey: ["publication", workflow],
    queryFn: ({ signal }) => apiRequest<Publication>(`/api/workflows/${at(workflow)}/publication`, { signal }),
  });
/** `known` is the publication as it was read; the server refuses the change if it has changed since. */
export const publish = (workflow: string, body: PublicationBody, known: Publication) =>
  apiRequest<Publication>(`/api/workflows/${at(workflow)}/publication`, {
    method: "PUT",
    body,
    ...ifMatch(known.etag),
  });
export const unpublish = (workflow: string, known: Publication) =>
  apiRequest<void>(`/api/workflows/${at(workflow)}/publication`, { method: "DELETE", ...ifMatch(known.etag) });

export const form = (token: string) =>
  queryOptions({
    queryKey: ["published", token],
    queryFn: ({ signal }) => apiRequest<Schemas["FormView"]>(`/api/published/${at(token)}`, { signal }),
    retry: false,
  });
export const startRun = (token: string, input: Json, key: string) =>
  apiRequest<Schemas["StartedRun"]>(`/api/published/${at(token)}/runs`, { body: { input, key } });
/** The state of a run, read again until it has ended. */
export const run = (token: string, name: string) =>
  queryOptions({
    queryKey: ["published", token, name],
    queryFn: ({ signal }) => apiRequest<Run>(`/api/published/${at(token)}/runs/${at(name)}`, { signal }),
    refetchInterval: (query) => (query.state.data && query.state.data.status !== "running" ? false : LOOKS_MS),
  });
