import { ErrorDetail } from "@/components/ErrorDetail";
import { useForm } from "../fields/fieldContext";

/** Problems of a node or an edge itself, not of one of its fields. `inside`: pointers below `at`. */
export function ElementProblems({ at, inside }: { at: string; inside: readonly string[] }) {
  const { problems } = useForm();
  const own = problems.filter((one) => inside.some((pointer) => one.pointer === `${at}${pointer}`));
  return own.map((one) => (
    <p
      key={`${one.code} ${one.message}`}
      className={`mt-1 text-sm ${one.severity === "error" ? "text-failed" : "text-waiting"}`}
    >
      <ErrorDetail code={one.code} message={one.message} hint={one.hint} />
    </p>
  ));
}
