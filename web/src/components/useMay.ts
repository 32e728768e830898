import { useQuery } from "@tanstack/react-query";
import { me } from "@/api/queries";
import type { Me } from "@/api/views";

const ROLES: readonly Me["role"][] = ["viewer", "operator", "editor", "admin"];

/** Whether who looks has at least this role. The server decides; this only keeps buttons away that it would refuse. */
export function useMay(least: Me["role"]): boolean {
  const known = useQuery(me());
  return known.data !== undefined && ROLES.indexOf(known.data.role) >= ROLES.indexOf(least);
}
