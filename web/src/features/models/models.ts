/** Queries of the model catalogue. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest } from "@/api/http";
import type { Schemas } from "@/api/views";

export type Models = Schemas["ModelCatalogue"];
export type Model = Models["models"][number];
export type Provider = Models["providers"][number];
export type ModelPing = Schemas["ModelPing"];

export const models = () =>
  queryOptions({
    queryKey: ["models"],
    queryFn: ({ signal }) => apiRequest<Models>("/api/models", { signal }),
    staleTime: 30_000,
  });

export const ping = () =>
  apiRequest<{ models: ModelPing[] }>("/api/models/ping", { method: "POST" }).then(
    (reply) => new Map(reply.models.map((one) => [one.name, one])),
  );
