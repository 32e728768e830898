import { useQuery } from "@tanstack/react-query";
import { revisions } from "@/api/queries";

/** The latest revision if it is newer than the edited one, which means that another user saved meanwhile. */
export function useNewerRevision(id: string, revision: number) {
  const known = useQuery({ ...revisions(id), refetchInterval: 20_000, refetchOnWindowFocus: "always" });
  const latest = known.data?.[0];
  return latest !== undefined && latest.revision > revision ? latest : undefined;
}
