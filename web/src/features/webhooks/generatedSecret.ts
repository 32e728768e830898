/** Secrets that the form generates: each is for one workflow, and leaves the vault when nothing names it any more. */
import { ApiError, apiRequest, query } from "@/api/http";
import type { Schemas } from "@/api/views";
import { deleteSecret, type SecretRule, setSecret } from "@/features/access/access";

const PRECONDITION_FAILED = 412;
const NAMES_MAX = 9;
const PREFIX = "WEBHOOK_";
const NO_LIMITS: SecretRule = { hosts: [], tools: [], workflows: [], groups: [] };

/** The name of the secret that saving generates. */
export const secretNameOf = (path: string) =>
  `${PREFIX}${path
    .trim()
    .toUpperCase()
    .replaceAll(/[^A-Z0-9]+/g, "_")}`;

/** 32 random bytes, as Standard Webhooks writes keys. GitHub takes the same text as it is. */
function newSecret(): string {
  return `whsec_${btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))))}`;
}

/** Store a generated secret that only the workflow may use, under the first free name. */
export async function storeNewSecret(workflow: string, path: string) {
  const value = newSecret();
  for (let number = 1; ; number += 1) {
    const name = secretNameOf(path) + (number > 1 ? `_${number}` : "");
    try {
      await setSecret(null, name, value, { ...NO_LIMITS, workflows: [workflow] });
      return { name, value };
    } catch (why) {
      if (!(why instanceof ApiError) || why.status !== PRECONDITION_FAILED || number === NAMES_MAX) throw why;
    }
  }
}

/** A secret that a webhook does not name any more. `used`: another version, workflow or agent still names it. `stays`:
 * it could not be deleted. */
export interface FormerSecret {
  name: string;
  state: "deleted" | "used" | "stays";
}

/** Delete a former secret of a webhook, if it was generated for this workflow and nothing names it. null: it was not
 * generated. */
export async function dropFormerSecret(workflow: string, name: string): Promise<FormerSecret | null> {
  if (!name.startsWith(PREFIX)) return null;
  try {
    const found = await apiRequest<Schemas["SecretPage"]>(`/api/secrets${query({ search: name, limit: 50 })}`);
    const known = found.secrets.find((one) => one.name === name);
    if (!known || !isFor(workflow, known)) return null;
    const uses = await apiRequest<Schemas["SecretUses"]>(`/api/secrets/${encodeURIComponent(name)}/uses`);
    if (Object.values(uses).flat().length > 0) return { name, state: "used" };
    await deleteSecret(known);
    return { name, state: "deleted" };
  } catch {
    return { name, state: "stays" }; // Only admins delete secrets; or another admin has changed it meanwhile.
  }
}

/** Whether a secret is for this workflow only, and may be sent nowhere. */
const isFor = (workflow: string, known: Schemas["SecretView"]) =>
  known.workflows.length === 1 &&
  known.workflows[0] === workflow &&
  known.hosts.length + known.tools.length + known.groups.length === 0;
