import com.google.re2j.Pattern;
import com.google.re2j.PatternSyntaxException;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;

/**
 * RE2/J, driven by lines of text.
 *
 * <p>A line is a pattern and the texts to match, in Base64, separated by tabs. The answer is a digit
 * for each text, 1 if all of it matches, or "invalid".
 */
public final class Patterns {
    private Patterns() {}

    public static void main(String[] args) throws Exception {
        BufferedReader in =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(line.split("\t", -1)));
        }
    }

    private static String answer(String[] fields) {
        Pattern pattern;
        try {
            pattern = Pattern.compile(decoded(fields[0]));
        } catch (PatternSyntaxException e) {
            return "invalid";
        }
        StringBuilder answer = new StringBuilder();
        for (int i = 1; i < fields.length; i++) {
            answer.append(pattern.matches(decoded(fields[i])) ? '1' : '0');
        }
        return answer.toString();
    }

    private static String decoded(String field) {
        return new String(Base64.getDecoder().decode(field), StandardCharsets.UTF_8);
    }
}
