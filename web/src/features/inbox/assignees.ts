/** The assignees of a gate: persons, groups, or anyone. */
import type { Gate, InboxGate, Me } from "@/api/views";

export const ASSIGNEES = ["you", "mine", "ours", "anyone", "every"] as const;
export type Assignee = (typeof ASSIGNEES)[number];

const ANYONE = "*";

export function isAssignedTo(
  assignee: Assignee,
  gate: Pick<InboxGate, "users" | "groups">,
  me: Pick<Me, "name" | "groups">,
) {
  switch (assignee) {
    case "mine":
      return gate.users.includes(me.name);
    case "ours":
      return gate.groups.some((one) => me.groups.includes(one));
    case "anyone":
      return gate.users.includes(ANYONE);
    default:
      return true;
  }
}

/** The filters that apply to a user. */
export function choices(me: Pick<Me, "role" | "groups">): Assignee[] {
  return ASSIGNEES.filter((one) => (one === "ours" ? me.groups.length > 0 : one !== "every" || me.role === "admin"));
}

/** Return whether the gate is restricted to named persons or groups. */
export function isRestricted(gate: Pick<Gate, "approvers">): boolean {
  return Boolean(gate.approvers?.users?.length || gate.approvers?.groups?.length);
}

/** The persons and groups who may answer now, after delegations. */
export function holders(gate: Pick<Gate, "approvers" | "delegated">): { users: string[]; groups: string[] } {
  const passed = gate.delegated;
  const taken = Object.values(passed).filter((one) => !(one in passed));
  const users = (gate.approvers?.users ?? []).filter((one) => !(one in passed));
  return { users: [...new Set([...users, ...taken])], groups: gate.approvers?.groups ?? [] };
}

/** Return whether the user may answer. The server enforces it; this only hides buttons. */
export function mayAnswer(gate: Pick<Gate, "approvers" | "delegated">, me: Pick<Me, "name" | "groups">): boolean {
  if (!isRestricted(gate)) return true;
  const { users, groups } = holders(gate);
  if (users.includes(me.name)) return true;
  return !(me.name in gate.delegated) && groups.some((one) => me.groups.includes(one));
}
