/** Names that a comment can mention, and the text of a mention that the user is writing. */
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { apiRequest, query } from "@/api/http";
import { me } from "@/api/queries";
import type { Schemas } from "@/api/views";
import { bestMatches } from "@/components/matching";
import { useHasRole } from "@/components/useHasRole";
import { commentsOn, type Subject } from "./comments";
import type { PresentPerson } from "./presence";

const SHOWN_MAX = 8;
/** As the server recognises mentions. */
const NAME = /^[\p{L}\p{N}_][\p{L}\p{N}_.@+-]{0,199}$/u;
const BEGUN = /(?<![\p{L}\p{N}_@./])@([\p{L}\p{N}_.@+-]*)$/u;

/** The part of a name between "@" and the caret; null: the caret does not follow a mention. */
export function begunMention(text: string, caret: number): string | null {
  return BEGUN.exec(text.slice(0, caret))?.[1] ?? null;
}

/** Replace the mention before the caret by a whole one. Return the text and the new caret. */
export function completeMention(text: string, caret: number, name: string): { text: string; caret: number } {
  const before = `${text.slice(0, caret).replace(BEGUN, "")}@${name} `;
  return { text: before + text.slice(caret).replace(/^ /, ""), caret: before.length };
}

/** People who match what the user has typed after "@": those who wrote comments here or are here now. Only admins may
 * list all users. */
export function useMentionable(subject: Subject, words: string | null): readonly string[] {
  const client = useQueryClient();
  const isAdmin = useHasRole("admin");
  const own = useQuery(me()).data?.name;
  const comments = useQuery({ ...commentsOn(subject), enabled: words !== null }).data ?? [];
  const users = useQuery({
    enabled: words !== null && isAdmin,
    queryKey: ["people", { mentioned: words }],
    queryFn: ({ signal }) =>
      apiRequest<Schemas["PeoplePage"]>(`/api/people${query({ search: words ?? "", limit: SHOWN_MAX })}`, { signal }),
    staleTime: 30_000,
    placeholderData: (before) => before,
  }).data;
  if (words === null) return [];
  const present = client
    .getQueriesData<{ people: PresentPerson[] }>({ queryKey: ["presence", subject.kind, subject.id] })
    .flatMap(([, found]) => found?.people ?? []);
  const names = [
    ...present.map((one) => one.name),
    ...comments.flatMap((one) => [one.by, one.resolvedBy ?? ""]),
    ...(users?.people ?? []).map((one) => one.name),
  ];
  const known = [...new Set(names)].filter((name) => name !== own && NAME.test(name));
  return bestMatches(words, known, (name) => [name]).slice(0, SHOWN_MAX);
}
