/** Who else looks at a workflow or an execution now. A hidden page sends nothing, so its person leaves. */
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { apiRequest } from "@/api/http";
import type { Schemas } from "@/api/views";
import type { Subject } from "./comments";

export type PresentPerson = Schemas["PresentView"];

/** The server forgets a person 20 s after the last sign. */
const SIGN_MS = 8_000;
/** A person who leaves earlier is not shown; the page loads first. */
const STAYS_MS = 2_000;

export function usePresence({ kind, id }: Subject, place: string): readonly PresentPerson[] {
  const [stays, setStays] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setStays(true), STAYS_MS);
    return () => clearTimeout(timer);
  }, []);
  const found = useQuery({
    enabled: stays,
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
