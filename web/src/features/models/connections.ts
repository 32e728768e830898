/** Queries and mutations for connecting providers of models; for admins. */
import { queryOptions } from "@tanstack/react-query";
import type { TFunction } from "i18next";
import { apiRequest, ifMatch } from "@/api/http";
import type { Schemas } from "@/api/views";
import type { Provider } from "./models";

export type ProviderKind = Schemas["ProviderKindView"];
export type Connection = Schemas["ConnectionBody"];
export type Connected = Schemas["ProviderConnection"];

const at = encodeURIComponent;

/** Names of the products, which are the same in every language; other kinds have texts of their own. */
const PRODUCTS: Record<string, string> = {
  openai: "OpenAI",
  anthropic: "Anthropic",
  google: "Google Gemini",
  groq: "Groq",
  mistral: "Mistral",
  bedrock: "Amazon Bedrock",
  ollama: "Ollama",
  vllm: "vLLM",
  azure: "Azure OpenAI",
  openrouter: "OpenRouter",
  deepseek: "DeepSeek",
};
export const productName = (kind: string, t: TFunction) => PRODUCTS[kind] ?? t(`connections.products.${kind}`, kind);
export const EXAMPLE_ADDRESSES: Record<string, string> = {
  ollama: "http://127.0.0.1:11434/v1",
  vllm: "http://127.0.0.1:8000/v1",
  azure: "https://example.openai.azure.com",
};
export const NAME = /^[a-z][a-z0-9-]{0,39}$/;

/** Several services may have this kind, so each needs a name of its own. */
export const isCompatible = (kind: string) => kind.startsWith("openai-compatible");

export const providerKinds = () =>
  queryOptions({
    queryKey: ["models", "kinds"],
    queryFn: ({ signal }) => apiRequest<Schemas["ProviderKinds"]>("/api/models/kinds", { signal }),
    staleTime: 300_000,
  });

/** `known` is the connection as it was listed, or null for a new one. */
export const connect = (known: Provider | null, name: string, connection: Connection) =>
  apiRequest<Connected>(`/api/models/providers/${at(name)}`, {
    method: "PUT",
    body: connection,
    ...ifMatch(known?.etag ?? ""),
  });
export const disconnect = (known: Provider) =>
  apiRequest<void>(`/api/models/providers/${at(known.name)}`, { method: "DELETE", ...ifMatch(known.etag) });
/** `etag` is that of the default model that was shown. */
export const chooseDefault = (model: string, etag: string) =>
  apiRequest<void>("/api/models/default", { method: "PUT", body: { model }, ...ifMatch(etag) });
