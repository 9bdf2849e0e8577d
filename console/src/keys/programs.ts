/** Programs that send a first request, by language. */

const QUESTION = "Hello, Gatehouse";

export function programs(key: string, origin: string, model: string): readonly { name: string; code: string }[] {
  return [
    {
      name: "curl",
      code: `curl ${origin}/v1/chat/completions \\
  -H "Authorization: Bearer ${key}" \\
  -H "Content-Type: application/json" \\
  -d '{"model": "${model}", "messages": [{"role": "user", "content": "${QUESTION}"}]}'`,
    },
    {
      name: "Python",
      code: `from openai import OpenAI

client = OpenAI(base_url="${origin}/v1", api_key="${key}")
answer = client.chat.completions.create(
    model="${model}",
    messages=[{"role": "user", "content": "${QUESTION}"}],
)
print(answer.choices[0].message.content)`,
    },
    {
      name: "Node",
      code: `import OpenAI from "openai";

const client = new OpenAI({ baseURL: "${origin}/v1", apiKey: "${key}" });
const answer = await client.chat.completions.create({
  model: "${model}",
  messages: [{ role: "user", content: "${QUESTION}" }],
});
console.log(answer.choices[0].message.content);`,
    },
    {
      name: "Claude Code",
      code: `export ANTHROPIC_BASE_URL=${origin}
export ANTHROPIC_AUTH_TOKEN=${key}
export ANTHROPIC_MODEL=${model}
export ANTHROPIC_SMALL_FAST_MODEL=${model}
claude`,
    },
    {
      name: "Codex",
      code: `# ~/.codex/config.toml; set GATEHOUSE_API_KEY=${key}
model = "${model}"
model_provider = "gatehouse"

[model_providers.gatehouse]
name = "Gatehouse"
base_url = "${origin}/v1"
env_key = "GATEHOUSE_API_KEY"
wire_api = "responses"`,
    },
  ];
}
