import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { ApiError } from "@/api/http";
import { me } from "@/api/queries";

/** Whether the server last answered that the user must log in. A query without data forgets its error while it is sent
 * again, as when the window gets the focus: the login form must stay, with what was typed. */
export function useIsLoggedOut(): boolean {
  const known = useQuery(me());
  const [isOut, setOut] = useState(false);
  const refused = known.error instanceof ApiError && known.error.status === 401;
  if (!known.isPending && refused !== isOut) setOut(refused);
  return known.isPending ? isOut : refused;
}
