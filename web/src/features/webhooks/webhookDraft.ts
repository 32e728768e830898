/** A webhook as a form edits it: one trigger in the document of its workflow. */
import { queryOptions } from "@tanstack/react-query";
import { apiRequest, apiResponse, ifMatch, type Problem } from "@/api/http";
import type { DefinitionBody } from "@/api/queries";
import type { JsonObject, Schemas } from "@/api/views";
import { dropFormerSecret, type FormerSecret, storeNewSecret } from "./generatedSecret";
import type { Webhook } from "./webhooks";

export const SIGNATURES = ["standard", "github", "none"] as const;
export type Signature = (typeof SIGNATURES)[number];

export interface WebhookDraft {
  workflow: string;
  path: string;
  /** The event that a call publishes; empty: a call starts the workflow. */
  event: string;
  publishes: boolean;
  signature: Signature;
  /** Whether saving generates a new secret; otherwise `secret` names a stored one. */
  generates: boolean;
  secret: string;
  /** An expression over the call; empty: each call counts. */
  match: string;
  /** The input of the executions: an expression for each name. Empty: the fields of the call. */
  inputs: readonly Mapping[];
}

export interface Mapping {
  name: string;
  expression: string;
}

/** A trigger as documents state it. */
type Trigger = JsonObject & { id: string; type: string };

export interface WorkflowTriggers {
  etag: string | null;
  triggers: Trigger[];
}

const at = encodeURIComponent;
const workflowPath = (id: string) => `/api/workflows/${at(id)}`;

export const newWebhook = (generates: boolean): WebhookDraft => ({
  workflow: "",
  path: "",
  event: "",
  publishes: false,
  signature: "standard",
  generates,
  secret: "",
  match: "",
  inputs: [],
});

async function triggersOf(workflow: string, how: { signal?: AbortSignal } = {}): Promise<WorkflowTriggers> {
  const read = await apiResponse<DefinitionBody>(`${workflowPath(workflow)}?dialect=native`, how);
  return { etag: read.etag, triggers: (read.value.document.triggers ?? []) as Trigger[] };
}

export const storedTriggers = (workflow: string) =>
  queryOptions({
    queryKey: ["definition", workflow, "triggers"],
    queryFn: ({ signal }) => triggersOf(workflow, { signal }),
    gcTime: 0,
  });

const textOf = (value: unknown) => (typeof value === "string" ? value : "");
const HANDLE = "secret.";

export function draftOfWebhook({ webhook: known, stored }: ReadWebhook): WebhookDraft {
  const trigger = stored.triggers.find((one) => one.id === known.trigger);
  return {
    workflow: known.workflowId,
    path: known.path,
    event: textOf(trigger?.event),
    publishes: textOf(trigger?.event) !== "",
    signature: known.signed ? known.scheme : "none",
    generates: false,
    secret: namedSecret(trigger),
    match: textOf(trigger?.match),
    inputs: Object.entries((trigger?.inputs ?? {}) as JsonObject).map(([name, expression]) => ({
      name,
      expression: textOf(expression),
    })),
  };
}

/** The trigger with the fields of the form; other fields stay as they are. */
function triggerOf(draft: WebhookDraft, known: Trigger | undefined, id: string): Trigger {
  const before: Trigger = known ?? { id, type: "webhook" };
  const {
    event: _event,
    match: _match,
    inputs: _inputs,
    secret: stored,
    auth: _auth,
    scheme: _scheme,
    ...others
  } = before;
  const signed = draft.signature !== "none";
  const inputs = draft.publishes ? [] : draft.inputs.filter(({ name }) => name.trim() !== "");
  return {
    ...others,
    id,
    type: "webhook",
    path: draft.path.trim(),
    ...(draft.publishes ? { event: draft.event.trim() } : {}),
    ...(draft.match.trim() ? { match: draft.match.trim() } : {}),
    ...(inputs.length > 0
      ? { inputs: Object.fromEntries(inputs.map(({ name, expression }) => [name.trim(), expression.trim()])) }
      : {}),
    ...(signed ? { secret: draft.secret ? `${HANDLE}${draft.secret}` : (stored ?? null) } : { auth: "none" }),
    ...(draft.signature === "github" ? { scheme: "github" } : {}),
  };
}

/** Where the form shows a problem of the document: by the place in the trigger. A path that another webhook has is a
 * problem of the path. */
export const fieldInTriggers = (known: ReadWebhook | null) => {
  const index = known ? String(known.stored.triggers.findIndex((one) => one.id === known.webhook.trigger)) : null;
  return ({ code, pointer }: Pick<Problem, "code" | "pointer">): string => {
    if (code === "webhook-taken") return "path";
    const [, trigger, field] = /^\/triggers\/(\d+)\/(.+)$/.exec(pointer) ?? [];
    return field !== undefined && (index === null || trigger === index) ? field.replaceAll("~1", "/") : "";
  };
};

/** A free id that resembles the path. */
function idFor(path: string, taken: readonly string[]): string {
  const base =
    path
      .trim()
      .replaceAll(/[^A-Za-z0-9]+/g, "-")
      .replaceAll(/^-|-$/g, "") || "webhook";
  let id = base;
  for (let number = 2; taken.includes(id); number += 1) id = `${base}-${number}`;
  return id;
}

export interface SavedWebhook {
  /** The generated secret, which is shown once; null: a stored one is used, or none. */
  secret: { name: string; value: string } | null;
  /** What became of the generated secret that the webhook had; null: it had none, or has it still. */
  former: FormerSecret | null;
}

/** A listed webhook, with the triggers of its workflow as the form read them. */
export interface ReadWebhook {
  webhook: Webhook;
  stored: WorkflowTriggers;
}

/** Save the webhook in its workflow. `known` is null for a new one. Throws if the workflow has changed since the form
 * read it. */
export async function saveWebhook(draft: WebhookDraft, known: ReadWebhook | null): Promise<SavedWebhook> {
  const stored = known === null ? await triggersOf(draft.workflow) : known.stored;
  const before = known === null ? undefined : stored.triggers.find((one) => one.id === known.webhook.trigger);
  const ids = stored.triggers.map((one) => one.id);
  const put = (named: WebhookDraft) => {
    const trigger = triggerOf(named, before, before?.id ?? idFor(draft.path, ids));
    const triggers = before
      ? stored.triggers.map((one) => (one === before ? trigger : one))
      : [...stored.triggers, trigger];
    return saveTriggers(draft.workflow, stored, triggers);
  };
  if (draft.signature === "none" || !draft.generates) {
    await put(draft);
    const stays = draft.signature === "none" ? "" : draft.secret || namedSecret(before);
    return { secret: null, former: await dropFormer(draft.workflow, before, stays) };
  }
  const secret = await storeNewSecret(draft.workflow, draft.path);
  try {
    await put({ ...draft, secret: secret.name });
  } catch (why) {
    await forgetSecret(secret.name); // A refused document must not leave a secret behind.
    throw why;
  }
  return { secret, former: await dropFormer(draft.workflow, before, secret.name) };
}

const forgetSecret = (name: string) =>
  apiRequest<void>(`/api/secrets/${at(name)}`, { method: "DELETE" }).catch(() => undefined);

/** The secret that a trigger names; empty: none. */
function namedSecret(trigger: JsonObject | undefined): string {
  const secret = textOf(trigger?.secret);
  return secret.startsWith(HANDLE) ? secret.slice(HANDLE.length) : "";
}

/** Delete the secret that the webhook had, if it was generated and the new trigger names another one. */
async function dropFormer(workflow: string, before: JsonObject | undefined, secret: string) {
  const former = namedSecret(before);
  return former && former !== secret ? dropFormerSecret(workflow, former) : null;
}

/** Remove the trigger of a webhook from its workflow. Throws if the workflow has changed since it was read. */
export async function deleteWebhook({ webhook, stored }: ReadWebhook): Promise<SavedWebhook> {
  const others = stored.triggers.filter((one) => one.id !== webhook.trigger);
  await saveTriggers(webhook.workflowId, stored, others);
  const before = stored.triggers.find((one) => one.id === webhook.trigger);
  return { secret: null, former: await dropFormer(webhook.workflowId, before, "") };
}

function saveTriggers(workflow: string, stored: WorkflowTriggers, triggers: Trigger[]) {
  const operation = { op: "change_workflow", set: { "/triggers": triggers } };
  return apiRequest<Schemas["EditedWorkflow"]>(`${workflowPath(workflow)}/edit`, {
    body: { operations: [operation], apply: true },
    ...ifMatch(stored.etag),
  });
}
