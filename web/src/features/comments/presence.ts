/** Who else looks at a workflow or an execution now. A hidden page sends nothing, so its person leaves. */
import { useQuery } from "@tanstack/react-query";
import { apiRequest } from "@/api/http";
import type { Schemas } from "@/api/views";
import type { Subject } from "./comments";

export type PresentPerson = Schemas["PresentView"];

/** The server forgets a person 20 s after the last sign. */
const SIGN_MS = 8_000;

export function usePresence({ kind, id }: Subject, place: string): readonly PresentPerson[] {
  const found = useQuery({
    queryKey: ["presence", kind, id, place],
    queryFn: ({ signal }) =>
      apiRequest<Schemas["PresentList"]>("/api/presence", { body: { kind, subject: id, place }, signal }),
    refetchInterval: SIGN_MS,
    placeholderData: (before) => before,
    staleTime: 0,
    gcTime: 0,
    retry: false,
  });
  return found.isError ? [] : (found.data?.people ?? []);
}
