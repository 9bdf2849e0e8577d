/** The models that the user may use. */
import { useQuery } from "@tanstack/react-query";
import { api, dataOf } from "../api/client";

const SANDBOX_MODEL = "sandbox/echo";

/** The names of the models that the user may use, sorted. */
export function useUsableModels() {
  return useQuery({
    queryKey: ["usable-models"],
    queryFn: async () => {
      const answer = await dataOf(api.GET("/v1/models"));
      return answer.data.map(({ id }) => id).sort();
    },
  });
}

/** Returns the model that example programs call: the sandbox's, if the user may use it, otherwise the first model that
 * the user may use. */
export function useExampleModel(): string {
  const { data } = useUsableModels();
  return data === undefined || data.includes(SANDBOX_MODEL) ? SANDBOX_MODEL : (data[0] ?? SANDBOX_MODEL);
}
