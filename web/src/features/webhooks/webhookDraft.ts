/** A webhook as a form edits it: one trigger in the document of its workflow. */
import { queryOptions } from "@tanstack/react-query";
import { ApiError, apiRequest, apiResponse, ifMatch } from "@/api/http";
import type { DefinitionBody } from "@/api/queries";
import type { JsonObject, Schemas } from "@/api/views";
import { type SecretRule, setSecret } from "@/features/access/access";
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
const PRECONDITION_FAILED = 412;
const NAMES_MAX = 9;

export function draftOfWebhook({ webhook: known, stored }: ReadWebhook): WebhookDraft {
  const trigger = stored.triggers.find((one) => one.id === known.trigger);
  const secret = textOf(trigger?.secret);
  return {
    workflow: known.workflowId,
    path: known.path,
    event: textOf(trigger?.event),
    publishes: textOf(trigger?.event) !== "",
    signature: known.signed ? known.scheme : "none",
    generates: false,
    secret: secret.startsWith(HANDLE) ? secret.slice(HANDLE.length) : "",
    match: textOf(trigger?.match),
  };
}

/** The trigger with the fields of the form; other fields stay as they are. */
function triggerOf(draft: WebhookDraft, known: Trigger | undefined, id: string): Trigger {
  const {
    event: _event,
    match: _match,
    secret: stored,
    auth: _auth,
    scheme: _scheme,
    ...others
  } = known ?? { id, type: "webhook" };
  const signed = draft.signature !== "none";
  return {
    ...others,
    id,
    type: "webhook",
    path: draft.path.trim(),
    ...(draft.publishes ? { event: draft.event.trim() } : {}),
    ...(draft.match.trim() ? { match: draft.match.trim() } : {}),
    ...(signed ? { secret: draft.secret ? `${HANDLE}${draft.secret}` : (stored ?? null) } : { auth: "none" }),
    ...(draft.signature === "github" ? { scheme: "github" } : {}),
  };
}

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

/** The name of the secret that saving generates. */
export const secretNameOf = (path: string) =>
  `WEBHOOK_${path
    .trim()
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, "_")}`;

/** 32 random bytes, as Standard Webhooks writes keys. GitHub takes the same text as it is. */
function newSecret(): string {
  return `whsec_${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))}`;
}

const NO_LIMITS: SecretRule = { hosts: [], tools: [], workflows: [], groups: [] };

export interface SavedWebhook {
  /** The generated secret, which is shown once; null: a stored one is used, or none. */
  secret: { name: string; value: string } | null;
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
    return { secret: null };
  }
  const secret = await storeNewSecret(draft);
  try {
    await put({ ...draft, secret: secret.name });
  } catch (why) {
    await forgetSecret(secret.name); // A refused document must not leave a secret behind.
    throw why;
  }
  return { secret };
}

/** Store a generated secret that only the workflow may use, under the first free name. */
async function storeNewSecret(draft: WebhookDraft) {
  const value = newSecret();
  for (let number = 1; ; number += 1) {
    const name = secretNameOf(draft.path) + (number > 1 ? `_${number}` : "");
    try {
      await setSecret(null, name, value, { ...NO_LIMITS, workflows: [draft.workflow] });
      return { name, value };
    } catch (why) {
      if (!(why instanceof ApiError) || why.status !== PRECONDITION_FAILED || number === NAMES_MAX) throw why;
    }
  }
}

const forgetSecret = (name: string) =>
  apiRequest<void>(`/api/secrets/${at(name)}`, { method: "DELETE" }).catch(() => undefined);

/** Remove the trigger of a webhook from its workflow. Throws if the workflow has changed since it was read. */
export async function deleteWebhook({ webhook, stored }: ReadWebhook): Promise<void> {
  const others = stored.triggers.filter((one) => one.id !== webhook.trigger);
  await saveTriggers(webhook.workflowId, stored, others);
}

function saveTriggers(workflow: string, stored: WorkflowTriggers, triggers: Trigger[]) {
  const operation = { op: "change_workflow", set: { "/triggers": triggers } };
  return apiRequest<Schemas["EditedWorkflow"]>(`${workflowPath(workflow)}/edit`, {
    body: { operations: [operation], apply: true },
    ...ifMatch(stored.etag),
  });
}
