/** Publications: of the owner of a workflow, and of visitors who have the link. */
import { queryOptions } from "@tanstack/react-query";
import { away, postForEvents } from "@/api/eventStream";
import { apiRequest, ifMatch } from "@/api/http";
import type { Json, Schemas } from "@/api/views";

export type Publication = Schemas["PublicationView"];
export type PublicationBody = Schemas["PublicationBody"];
export type Run = Schemas["FormRunView"];

/** The fields of the page *Publish*; lists are texts with one entry per line. */
export interface Draft {
  form: boolean;
  chat: boolean;
  mcp: boolean;
  model: boolean;
  title: string;
  text: string;
  thanks: string;
  greeting: string;
  suggestions: string;
  login: boolean;
  output: boolean;
  origins: string;
}

/** The fields for a publication. Where nothing was saved yet, the form is chosen. */
export function draftOf(known: Publication): Draft {
  const { form, chat, mcp, model, title, text, thanks, greeting, login, output } = known;
  return {
    form: form || known.etag === "",
    chat,
    mcp,
    model,
    title,
    text,
    thanks,
    greeting,
    login,
    output,
    suggestions: known.suggestions.join("\n"),
    origins: known.origins.join("\n"),
  };
}

export function publicationBody(draft: Draft, newLink: boolean): PublicationBody {
  const lines = draft.suggestions.split("\n").map((line) => line.trim());
  return {
    ...draft,
    suggestions: lines.filter(Boolean),
    origins: draft.origins.split(/\s+/).filter(Boolean),
    newLink,
  };
}

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

/** The texts of a published chat. */
export const chatPage = (token: string) =>
  queryOptions({
    queryKey: ["published", token, "chat"],
    queryFn: ({ signal }) => apiRequest<Schemas["ChatPageView"]>(`/api/published/${at(token)}/chat`, { signal }),
    retry: false,
  });
export type Turn = Schemas["VisitorTurn"];
/** The conversation of a visitor, read again while a person has to decide something. */
export const conversation = (token: string, name: string | null) =>
  queryOptions({
    queryKey: ["published", token, "chat", name],
    queryFn: async ({ signal }) =>
      name === null
        ? []
        : (
            await apiRequest<Schemas["VisitorConversation"]>(`/api/published/${at(token)}/chat/${at(name)}`, {
              signal,
            })
          ).turns,
    refetchInterval: (query) => (query.state.data?.at(-1)?.status === "running" ? LOOKS_MS : false),
    retry: false,
  });

/** Send a message and pass on the words of its answer. Return the name of the conversation. */
export async function sendMessage(
  token: string,
  body: { message: string; conversation: string | null; key: string },
  onWords: (text: string) => void,
): Promise<string> {
  let name = body.conversation;
  await postForEvents(`/api/published/${at(token)}/chat`, body, {
    onEvent: (event, data) => {
      if (event === "begun") name = (data as { conversation: string }).conversation;
      else if (event === "words") onWords((data as { text: string }).text);
    },
  });
  if (name === null) throw away();
  return name;
}
