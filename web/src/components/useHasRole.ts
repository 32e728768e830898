import { useQuery } from "@tanstack/react-query";
import { me } from "@/api/queries";
import type { Me } from "@/api/views";

const ROLES: readonly Me["role"][] = ["viewer", "operator", "editor", "admin"];

/** Return whether the user has at least this role. The server enforces roles; this only hides buttons. */
export function useHasRole(minimumRole: Me["role"]): boolean {
  const known = useQuery(me());
  return known.data !== undefined && ROLES.indexOf(known.data.role) >= ROLES.indexOf(minimumRole);
}
