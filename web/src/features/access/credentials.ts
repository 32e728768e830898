/** Credentials: secrets whose value is made from parts. For admins. */
import { apiRequest, ifMatch } from "@/api/http";
import type { Schemas } from "@/api/views";
import type { Secret } from "./access";

export type CredentialBody = Schemas["CredentialBody"];
export type CredentialType = CredentialBody["type"];

export const TYPES: readonly CredentialType[] = ["basic", "oauth2-client", "oauth2-code"];

const at = encodeURIComponent;

/** Store a credential. `known` is the secret as it was listed, or null for a new one. Secret parts that are empty stay.
 * Throws if the secret has changed since. */
export const setCredential = (known: Secret | null, name: string, body: CredentialBody) =>
  apiRequest<void>(`/api/secrets/${at(name)}/credential`, {
    method: "PUT",
    body,
    ...ifMatch(known?.etag ?? ""),
  });

/** The page of the service at which an admin connects a credential. */
export const beginAuthorization = (name: string) =>
  apiRequest<Schemas["AuthorizationAddress"]>(`/api/secrets/${at(name)}/authorization`, { method: "POST" });

export const completeAuthorization = (name: string, code: string, state: string) =>
  apiRequest<void>(`/api/secrets/${at(name)}/authorization`, { method: "PUT", body: { code, state } });

/** The address that the service must know. */
export const redirectOf = (name: string) => `${window.location.origin}/connected/${at(name)}`;
