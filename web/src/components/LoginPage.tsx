/** The address of the question who one is, which is asked around every page. Whoever is in already goes on. */
import { useQuery } from "@tanstack/react-query";
import { Navigate } from "@tanstack/react-router";
import { me } from "@/api/queries";

export function LoginPage() {
  return useQuery(me()).isSuccess ? <Navigate to="/workflows" replace /> : null;
}
