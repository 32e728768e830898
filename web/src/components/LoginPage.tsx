/** The route /login. The shell shows the login form on every page; logged-in users are redirected. */
import { useQuery } from "@tanstack/react-query";
import { Navigate } from "@tanstack/react-router";
import { me } from "@/api/queries";

export function LoginPage() {
  return useQuery(me()).isSuccess ? <Navigate to="/workflows" replace /> : null;
}
